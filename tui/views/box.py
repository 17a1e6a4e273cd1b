"""A line of text that is typed, pasted, or put there from traffic."""

from __future__ import annotations

from textual.widgets import Input

from kafkascope.analyzer.text import escaped


class Box(Input):
    """Textual draws the value as it is: what a terminal would obey stands as an escape."""

    def validate_value(self, value: str) -> str:
        r"""Textual's hook for every new value: `\u202e` in the place of what does not print."""
        return escaped(value)
