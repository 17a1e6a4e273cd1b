"""The headless commands, one module each; `tui.cli` lists them and imports a module when its
command is called."""
