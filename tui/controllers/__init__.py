"""What the program does, one controller for each noun: it declares its keys, and is given the
`Workspace`, the panes and the app. Controllers do not import each other, nor `tui.app`."""
