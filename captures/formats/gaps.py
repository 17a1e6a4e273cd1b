"""Damaged places of a capture, and the sentence about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from kafkascope.captures.errors import CutShort

MAX_GAPS: Final = 1000
"""Gaps of one file. A file with more is noise, and each costs a search."""


CUT: Final = "the record is incomplete"
"""Reason why the last record of a file cannot be read."""
CUT_SHORT: Final = "is cut short"
"""What is said of such a file."""


class FileGap(NamedTuple):
    """Bytes that could not be read as records."""

    at: int
    """Offset in the (uncompressed) file."""
    resume: int | None
    """Where records go on; None: nowhere. It lies before `at` when the length of the record before
    was wrong and hid others."""
    reason: str


def add(gaps: list[FileGap], gap: FileGap) -> None:
    """Add a gap, or extend the last one if the new one begins at its end."""
    if gaps and gaps[-1].resume == gap.at:
        last = gaps.pop()
        gap = FileGap(last.at, gap.resume, last.reason)
    gaps.append(gap)


def cut_short(name: str, gaps: Sequence[FileGap]) -> CutShort:
    """Return the error for a damaged file, as one sentence."""
    first, last = gaps[0], gaps[-1]
    text = f"{name} is damaged at byte {first.at}: {first.reason}"
    if gaps[0][1:] == (None, CUT):
        text = f"{name} {CUT_SHORT}: the record at byte {first.at} is incomplete"
    elif len(gaps) > 1:
        text = f"{name} is damaged at {len(gaps)} places, first at byte {first.at}: {first.reason}"
    skipped = skipped_bytes(gaps)
    if skipped:
        text += f"; {skipped} bytes were skipped"
    if last.resume is None and len(gaps) > 1:
        text += f"; nothing could be read after byte {last.at}"
    error = CutShort(text)
    error.at = first.at
    return error


def skipped_bytes(gaps: Sequence[FileGap]) -> int:
    """Return the size of all gaps behind which records go on."""
    return sum(max(gap.resume - gap.at, 0) for gap in gaps if gap.resume is not None)
