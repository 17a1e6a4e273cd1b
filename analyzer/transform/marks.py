"""Marks and comments that the terminal UI keeps in a file beside the capture: for commands that cut
out part of it. The UI writes the file (tui/settings/notes.py).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kafkascope.analyzer.filter.known import Known

SUFFIX: Final = ".kafkascope.json"
SCHEMA: Final = "notes/1"


class BadMarks(Exception):
    """The file is there and cannot be read; one line for people."""


def notes_path(inputs: Sequence[str]) -> Path | None:
    """The file for these inputs; None when there is no place for it."""
    if len(inputs) != 1 or inputs[0] == "-":
        return None
    path = Path(inputs[0])
    if not (path.is_file() or path.is_dir()):
        return None
    return path.with_name(path.name + SUFFIX) if path.name else None


def marks_of(inputs: Sequence[str]) -> Known | None:
    """Read the marks file of these inputs, by the numbers of exchanges; None without one.
    `BadMarks`."""
    path = notes_path(inputs)
    if path is None or not path.exists():
        return None
    try:
        listed = json.loads(path.read_text("utf-8"))["exchanges"]
        # Without a number: the UI has not met that exchange since.
        found = [(each["number"], each) for each in listed if isinstance(each.get("number"), int)]
        return Known(
            marked={number for number, each in found if each.get("marked")},
            ignored={number for number, each in found if each.get("ignored")},
            comments={
                number: str(each["comment"]) for number, each in found if each.get("comment")
            },
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadMarks(f"{path.name} cannot be read: {error}") from None
