"""A filter held against frames that pass: first by the head alone, then, if that does not settle
it, by the whole frame. The language is the one of everywhere (analyzer.filter)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analyzer.filter import Filter, bind
from analyzer.filter_bind import Bound, Every, Some, Test, Unless, fields_of
from analyzer.filter_saved import spelled

if TYPE_CHECKING:
    from proxy.message import Message

HEAD_FIELDS: Final = frozenset(
    {
        *("api", "version", "client", "conn", "flexible", "ip", "port"),
        *("client.ip", "client.port", "broker", "broker.ip", "broker.port"),
        *("removed_in", "deprecated"),
    }
)
"""What the head of a request and its connection tell."""

RESPONSE_FIELDS: Final = frozenset(
    {
        *("response.bytes", "bytes", "latency", "wait", "excess", "server", "throttle", "state"),
        *("answered", "open", "lost", "no-reply", "orphan", "opaque", "error", "error.top"),
        *("failed", "retriable", "frame", "number", "time.delta", "lag", "high_watermark"),
    }
)
"""What nobody knows before the response is there."""

MAX_KNOWN: Final = 10_000


def of_responses(bound: Bound | None) -> set[str]:
    """Those of its fields that only a response has."""
    return {name for name in fields_of(bound) if name in RESPONSE_FIELDS or name == "response."}


class Matcher:
    """One filter."""

    def __init__(self, text: str) -> None:
        """`FilterError` for a filter that is wrong; a blank one matches everything."""
        self.text = text
        self.bound = bind(spelled(text))
        self.early: set[str] = of_responses(self.bound)
        """Fields that a rule about requests must not name."""
        self._whole = Filter(self.bound)
        self._known: dict[tuple[object, ...], bool | None] = {}

    def by_head(self, message: Message) -> bool | None:
        """Whether it matches, by the head alone; None: the whole frame has to be seen."""
        if self.bound is None:
            return True
        key = (message.key, message.version, message.client_id, message.relay.number)
        if key in self._known:
            return self._known[key]
        answer = _settle(self.bound, message)
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[key] = answer
        return answer

    def __call__(self, message: Message) -> bool:
        """Whether it matches."""
        return self._whole(message.row, message.exchange)


def _settle(bound: Bound, message: Message) -> bool | None:
    match bound:
        case Every(terms):
            answers = [_settle(term, message) for term in terms]
            return False if False in answers else None if None in answers else True
        case Some(terms):
            answers = [_settle(term, message) for term in terms]
            return True if True in answers else None if None in answers else False
        case Unless(term):
            answer = _settle(term, message)
            return None if answer is None else not answer
        case Test() if not bound.path and bound.field.name in HEAD_FIELDS:
            return Filter(bound)(message.head_row)
    return None


__all__ = ["Matcher", "fields_of", "of_responses"]
