"""What a sentence states, whatever its words: names and numbers, in their order."""

from __future__ import annotations

import re


def states(text: str, *parts: object) -> bool:
    """Return whether a text has these parts in this order, each as whole words."""
    place = 0
    for part in map(str, parts):
        found = re.compile(rf"(?<![\w.]){re.escape(part)}(?!\w)").search(text, place)
        if found is None:
            return False
        place = found.end()
    return True
