"""What the program does, one controller for each noun: it declares its keys, and is given the
`Workspace` and the `Shell` around it. Controllers do not know each other, nor `tui.app`."""
