"""What the program does, one controller for each noun, and the table of its keys. A controller is
given the `Workspace`, the panes and the app; few import others, none `tui.app`."""
