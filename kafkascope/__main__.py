"""Runs the command line: `python -m kafkascope` is the same as `kafkascope`."""

from kafkascope.tui.cli import main

main()
