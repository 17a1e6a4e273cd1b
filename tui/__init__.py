"""The terminal UI and the composition root of the command line. Home of textual."""
