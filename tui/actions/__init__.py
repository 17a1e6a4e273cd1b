"""What the program does, by noun: each part is a base class of `tui.app.ScopeApp`, with the actions
of its keys and the messages it listens to; `base` is what they share."""
