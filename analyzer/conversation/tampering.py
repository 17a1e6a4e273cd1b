"""What rules of our proxy did to an exchange, as its recording says in the comments of packets.

The proxy writes these words (`proxy.judging`), here they are read: as notes of the exchange, so
that every output has them and findings do not blame the broker.
"""

from __future__ import annotations

import re
from functools import cache
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
HIDDEN: Final = "hidden"
_GIVEN: Final = re.compile(
    r"set (?:request|response)\.[a-z0-9_.\[\]*]+ [-+*]?= |records set (?:value|key|header) "
)
"""What comes before the values that rules give to fields and records."""
_OURS: Final = (
    "delay normal throttle drop error stamp reset close half-close truncate corrupt-crc set "
    "records lose duplicate reorder corrupt crc value timestamp versions <= member expire "
    "stale-metadata black-hole hold at top group topic partition not sent to the broker was asked "
    "edited dropped by hand"
)
_WORDS: Final = frozenset(_OURS.split())
_NUMBER: Final = re.compile(r"[-+]?[\d.]+[A-Za-z]{0,3}(?:/s)?(?:(?:\.\.|-)[\d.]+[a-z]{0,3})?")
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


def renamed(notes: tuple[Note, ...]) -> tuple[Note, ...]:
    """Return the notes of an exchange whose names are changed."""
    return tuple(
        note._replace(text=NOTE + nameless(note.text.removeprefix(NOTE)))
        if note.text.startswith(NOTE)
        else note
        for note in notes
    )


def comment_of(notes: Iterable[Note]) -> str:
    """Return the comment from which these notes are read again."""
    return BETWEEN.join(
        deed if deed.startswith(RULE) or deed.endswith(BY_HAND) else FAULT + deed
        for deed in deeds_of(notes)
    )


def nameless(deed: str) -> str:
    """Return what was done without what people wrote into their rule: its name, and the values that
    fields and records got. What else is no word of ours goes, too."""
    if deed.startswith(RULE):
        return f"{RULE}{HIDDEN}"
    found = _GIVEN.match(deed)
    if found is not None:
        return f"{found[0]}{HIDDEN}"
    kept: list[str] = []
    for word in deed.split():
        bare = word.strip(",")
        if bare in _WORDS or _NUMBER.fullmatch(bare) or bare in _names():
            kept.append(word)
        elif kept[-1:] != [HIDDEN]:
            kept.append(HIDDEN)
    return " ".join(kept)


@cache
def _names() -> frozenset[str]:
    from kafkascope.dissectors.reference.codes import ERRORS
    from kafkascope.dissectors.registry import APIS

    return frozenset(each.name for table in (ERRORS, APIS) for each in table.values())


def untold(text: str) -> str:
    """Return a text of others for a comment: no part of it is taken for what a proxy did, or
    for the subject of a comment (see `captures.formats.remarks`)."""
    text = text.replace(BETWEEN.strip(), ",").replace(" [", " (")
    if text.startswith((FAULT, RULE)):
        text = f"said: {text}"
    return f"{text}." if text.endswith(BY_HAND) else text
