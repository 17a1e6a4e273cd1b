"""Effects of our proxy on exchanges, read from the packet comments of its recordings.

The proxy writes the comments (`proxy/rules/faults`, `proxy/relay`). They become notes of the
exchange, so that every output shows them, and findings do not blame the broker (decision 0023).
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.model import Note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafkascope.analyzer.model import Frame
    from kafkascope.captures.formats.remarks import Remarks
    from kafkascope.captures.model import Endpoint

FAULT: Final = "fault: "
RULE: Final = "rule: "
BY_HAND: Final = " by hand"
"""Suffix of an effect that a user had on a held frame: edited or dropped."""
ADDRESSES: Final = "addresses: "
"""Prefix of broker addresses in a response: as the broker and as the proxy advertises them."""
BETWEEN: Final = "; "
HIDDEN: Final = "hidden"
_ASSIGNMENT: Final = re.compile(
    r"set (?:request|response)\.[a-z0-9_.\[\]*]+ [-+*]?= |records set (?:value|key|header) "
)
"""Matches the start of an effect that sets fields or records, up to the value."""
_OUR_WORDS: Final = (
    "delay normal throttle drop error stamp reset close half-close truncate corrupt-crc set "
    "records lose duplicate reorder corrupt crc value timestamp versions <= member expire "
    "stale-metadata black-hole hold at top group topic partition not sent to the broker was asked "
    "edited dropped by hand"
)
_WORDS: Final = frozenset(_OUR_WORDS.split())
_NUMBER: Final = re.compile(r"[-+]?[\d.]+[A-Za-z]{0,3}(?:/s)?(?:(?:\.\.|-)[\d.]+[a-z]{0,3})?")
_REPLACED: Final = re.compile(r"(\S+):(\d+) -> (\S+):(\d+)")
NOTE: Final = "the proxy that recorded this: "


def named(client: Endpoint, correlation_id: int) -> str:
    """Return the name of an exchange, for a comment on packets of another exchange."""
    return f"{client} {correlation_id}"


def notes_of(
    remarks: Remarks,
    request: Frame | None,
    response: Frame | None,
    client: Endpoint,
    correlation_id: int | None,
) -> tuple[Note, ...]:
    """Return a note for each effect of the proxy on an exchange."""
    texts = [remarks.at(*frame.parts[0][:2]) for frame in (request, response) if frame is not None]
    if request is not None and correlation_id is not None:
        texts.append(remarks.about(named(client, correlation_id), *request.parts[0][:2]))
    effects = [
        part.removeprefix(FAULT)
        for text in texts
        for part in text.split(BETWEEN)
        if part.startswith((FAULT, RULE, ADDRESSES)) or part.endswith(BY_HAND)
    ]
    return tuple(Note("note", NOTE + effect) for effect in dict.fromkeys(effects))


def effects_of(notes: Iterable[Note]) -> list[str]:
    """Return the effects of the proxy's rules that the notes of an exchange name."""
    return [effect for effect in _noted(notes) if not effect.startswith(ADDRESSES)]


def _noted(notes: Iterable[Note]) -> list[str]:
    return [note.text.removeprefix(NOTE) for note in notes if note.text.startswith(NOTE)]


def brokers_own(notes: Iterable[Note]) -> dict[tuple[str, int], tuple[str, int]]:
    """Map the addresses that the proxy put into a response to those that the broker advertised."""
    return {
        (ours, int(our_port)): (host, int(port))
        for effect in _noted(notes)
        if effect.startswith(ADDRESSES)
        for host, port, ours, our_port in _REPLACED.findall(effect)
    }


def anonymized_notes(notes: tuple[Note, ...], host: Callable[[str], str]) -> tuple[Note, ...]:
    """Return notes without the names that users gave, for anonymized outputs."""
    return tuple(
        note._replace(text=NOTE + anonymized(note.text.removeprefix(NOTE), host))
        if note.text.startswith(NOTE)
        else note
        for note in notes
    )


def comment_of(notes: Iterable[Note]) -> str:
    """Return the packet comment that `notes_of` turns into these notes."""
    return BETWEEN.join(
        effect
        if effect.startswith((RULE, ADDRESSES)) or effect.endswith(BY_HAND)
        else FAULT + effect
        for effect in _noted(notes)
    )


# A list of allowed words, because a comment has text of the user's rules: any other word may be a
# topic, a host or a value.
def anonymized(effect: str, host: Callable[[str], str]) -> str:
    """Return an effect without texts of users. Hidden are names of rules, values of fields and
    records, and all words that are neither ours nor in Kafka's tables; hosts are replaced."""
    if effect.startswith(ADDRESSES):
        return _REPLACED.sub(lambda at: f"{host(at[1])}:{at[2]} -> {host(at[3])}:{at[4]}", effect)
    if effect.startswith(RULE):
        return f"{RULE}{HIDDEN}"
    assignment = _ASSIGNMENT.match(effect)
    if assignment is not None:
        return f"{assignment[0]}{HIDDEN}"
    words: list[str] = []
    for word in effect.split():
        bare = word.strip(",")
        if bare in _WORDS or _NUMBER.fullmatch(bare) or bare in _names():
            words.append(word)
        elif words[-1:] != [HIDDEN]:
            words.append(HIDDEN)
    return " ".join(words)


@cache
def _names() -> frozenset[str]:
    from kafkascope.dissectors.reference.codes import ERRORS
    from kafkascope.dissectors.registry import APIS

    return frozenset(entry.name for table in (ERRORS, APIS) for entry in table.values())


def escaped(text: str) -> str:
    """Return a text for use in a comment, so that no part of it reads as an effect of a proxy, or
    as the subject of the comment (see `captures.formats.remarks`)."""
    text = text.replace(BETWEEN.strip(), ",").replace(" [", " (")
    if text.startswith((FAULT, RULE)):
        text = f"said: {text}"
    return f"{text}." if text.endswith(BY_HAND) else text
