"""What rules of our proxy did to an exchange, as its recording says in the comments of packets.

The proxy writes these words (`proxy.judging`), here they are read: as notes of the exchange, so
that every output has them and findings do not blame the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.model import Note

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkascope.analyzer.model import Frame
    from kafkascope.captures.formats.remarks import Remarks
    from kafkascope.captures.model import Endpoint

FAULT: Final = "fault: "
RULE: Final = "rule: "
BY_HAND: Final = " by hand"
"""Held frames that somebody edited or dropped."""
BETWEEN: Final = "; "
NOTE: Final = "the proxy that recorded this: "


def named(client: Endpoint, correlation_id: int) -> str:
    """Return how a comment names an exchange at whose own packets it does not stand."""
    return f"{client} {correlation_id}"


def notes_of(
    remarks: Remarks,
    asked: Frame | None,
    response: Frame | None,
    client: Endpoint,
    correlation_id: int | None,
) -> tuple[Note, ...]:
    """Return a note for each thing that was done to an exchange."""
    texts = [remarks.at(*frame.parts[0][:2]) for frame in (asked, response) if frame is not None]
    if asked is not None and correlation_id is not None:
        texts.append(remarks.about(named(client, correlation_id), *asked.parts[0][:2]))
    deeds = [
        part.removeprefix(FAULT)
        for text in texts
        for part in text.split(BETWEEN)
        if part.startswith((FAULT, RULE)) or part.endswith(BY_HAND)
    ]
    return tuple(Note("note", NOTE + deed) for deed in dict.fromkeys(deeds))


def deeds_of(notes: Iterable[Note]) -> list[str]:
    """Return what the proxy did, among the notes of an exchange."""
    return [each.text.removeprefix(NOTE) for each in notes if each.text.startswith(NOTE)]


def comment_of(notes: Iterable[Note]) -> str:
    """Return the comment from which these notes are read again."""
    return BETWEEN.join(
        deed if deed.startswith(RULE) or deed.endswith(BY_HAND) else FAULT + deed
        for deed in deeds_of(notes)
    )


def untold(text: str) -> str:
    """Return a text of others for a comment: nobody takes a part of it for what a proxy did, or
    for the subject of a comment (see `captures.formats.remarks`)."""
    text = text.replace(BETWEEN.strip(), ",").replace(" [", " (")
    if text.startswith((FAULT, RULE)):
        text = f"said: {text}"
    return f"{text}." if text.endswith(BY_HAND) else text


__all__ = [
    "BETWEEN",
    "BY_HAND",
    "FAULT",
    "RULE",
    "comment_of",
    "deeds_of",
    "named",
    "notes_of",
    "untold",
]
