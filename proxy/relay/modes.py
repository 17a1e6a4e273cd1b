"""What happens to the frame that is passing, and what may change that: modes, events, transitions.

A frame begins as PASS and ends in whatever mode it has when its last byte is here; the next one
begins as PASS again.

                 ┌─► COLLECT ─► HIDE
    begin ─► PASS ─► WALK ─► TAIL        any of them ─► DISCARD
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Mode(Enum):
    """Treatment of the bytes of a frame."""

    __hash__ = object.__hash__  # Enum's own hashes the name, in Python, on every look-up

    PASS = "forwarded as they arrive"
    COLLECT = "buffered until the frame is complete"
    HIDE = (
        "forwarded as they arrive, recorded as asterisks: too large to buffer, and possibly secret"
    )
    WALK = "forwarded as they arrive, while its node endpoints are searched"
    TAIL = "buffered to the end of the frame; the bytes before them are forwarded already"
    DISCARD = "swallowed"


PASS: Final = Mode.PASS
COLLECT: Final = Mode.COLLECT
HIDE: Final = Mode.HIDE
WALK: Final = Mode.WALK
TAIL: Final = Mode.TAIL
DISCARD: Final = Mode.DISCARD

# Bytes go on as they come.
FORWARDED: Final = frozenset((PASS, WALK, HIDE))
# Bytes stay until the frame is whole.
KEPT: Final = frozenset((COLLECT, TAIL))
# Bytes must not go on in one piece with those of the frame before.
APART: Final = frozenset((COLLECT, DISCARD, HIDE))
# The receiver sees nothing of the frame while it comes.
WITHHELD: Final = frozenset((COLLECT, DISCARD))


class Event(Enum):
    """Events that become known, or are decided, about a frame."""

    __hash__ = object.__hash__

    NEEDED = "a rule or the recording needs all of it"
    ENDPOINTS_BEHIND = "node endpoints may be at its end, too far to buffer all of it"
    TOO_LARGE = "it is larger than the buffer"
    TOO_LARGE_FOR_A_SECRET = "as TOO_LARGE, and it contains a secret"
    FOUND = "the next bytes are node endpoints"
    NOT_FOUND = "it has no node endpoints, or their position is unknown"
    DROPPED = "a rule drops it, or ends its direction"


TRANSITIONS: Final[dict[Mode, dict[Event, Mode]]] = {
    PASS: {
        Event.NEEDED: COLLECT,
        Event.ENDPOINTS_BEHIND: WALK,
        Event.DROPPED: DISCARD,
    },
    COLLECT: {
        Event.NEEDED: COLLECT,
        Event.TOO_LARGE: PASS,
        Event.TOO_LARGE_FOR_A_SECRET: HIDE,
        Event.DROPPED: DISCARD,
    },
    HIDE: {Event.DROPPED: DISCARD},
    WALK: {
        Event.NEEDED: COLLECT,
        Event.FOUND: TAIL,
        Event.NOT_FOUND: PASS,
        Event.DROPPED: DISCARD,
    },
    TAIL: {},
    DISCARD: {Event.DROPPED: DISCARD},
}


class ImpossibleTransition(RuntimeError):
    """An event that cannot happen to a frame in its mode: a bug."""


def transition(mode: Mode, event: Event) -> Mode:
    """The mode of a frame after an event; `ImpossibleTransition`."""
    try:
        return TRANSITIONS[mode][event]
    except KeyError:
        raise ImpossibleTransition(f"{event.name} in mode {mode.name}") from None
