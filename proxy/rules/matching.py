"""A filter held against frames that pass: first by the head alone, then, if that does not settle
it, by the whole frame. The language is the one of everywhere (analyzer.filter)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.filter.bind import Bound, Every, Some, Test, Unless
from kafkascope.analyzer.filter.language import Filter, bind
from kafkascope.analyzer.filter.saved import spelled
from kafkascope.proxy.rules.witness import HEAD_FIELDS, CanHarm, refusal

if TYPE_CHECKING:
    from kafkascope.proxy.rules.message import Message

MAX_KNOWN: Final = 10_000


class Matcher:
    """One filter."""

    def __init__(self, text: str) -> None:
        """`FilterError` for a filter that is wrong; a blank one matches everything."""
        self.text = text
        self.bound = bind(spelled(text))
        self._whole = Filter(self.bound)
        self._known: dict[tuple[object, ...], bool | None] = {}

    def refusal(self, side: int, can_harm: CanHarm | None = None) -> str | None:
        """Why it can match no frame of that side (that can be harmed); None when it can."""
        return refusal(self.bound, side, can_harm)

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


__all__ = ["Matcher"]
