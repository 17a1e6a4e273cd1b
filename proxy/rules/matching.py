"""Holds a filter against frames: first against the head alone, then, where that is not enough,
against the whole frame.

The language is the display filter's (analyzer.filter).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.filter.bind import Bound, Every, Some, Test, Unless, fields_of
from kafkascope.analyzer.filter.fields import DECODED
from kafkascope.analyzer.filter.known import NOTHING, Known
from kafkascope.analyzer.filter.language import Filter, bind
from kafkascope.analyzer.filter.saved import spelled
from kafkascope.proxy.rules.witness import HEAD_FIELDS, CanHarm, Unable, refusal

if TYPE_CHECKING:
    from kafkascope.proxy.rules.intercepted import InterceptedFrame

MAX_KNOWN: Final = 10_000
LONGEST_KNOWN: Final = 1_000
"""Letters of a client id; frames with a longer one are looked at each time."""


class Matcher:
    """One filter."""

    def __init__(self, text: str) -> None:
        """`FilterError` for a filter that is wrong; a blank one matches everything."""
        self.text = text
        self.bound = bind(spelled(text))
        self.decodes = bool(fields_of(self.bound) & DECODED)
        """Whether it asks for keys and values that are decoded by schema: then `decided` tells."""
        self._whole: Filter | None = None
        self._known: dict[tuple[object, ...], bool | None] = {}

    @property
    def topics(self) -> frozenset[str]:
        """The topics that frames have to name; empty where any will do."""
        return frozenset(_demanded(self.bound, "topic"))

    def refusal(
        self, side: int, can_harm: CanHarm | None = None, unable: Unable | None = None
    ) -> str | None:
        """Why the filter can match no frame of that side (that can be harmed); None when it can."""
        return refusal(self.bound, side, can_harm, unable)

    def by_head(self, frame: InterceptedFrame) -> bool | None:
        """Whether a frame matches by its head alone. None: only the whole frame can tell."""
        if self.bound is None:
            return True
        key = (frame.key, frame.version, frame.client_id, frame.context.number)
        if key in self._known:
            return self._known[key]
        settled = _settle(self.bound, frame)
        if len(frame.client_id or "") <= LONGEST_KNOWN:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[key] = settled
        return settled

    def __call__(self, frame: InterceptedFrame) -> bool:
        """Whether a whole frame matches."""
        return self._filter(NOTHING)(frame.row, frame.exchange)

    async def decided(self, frame: InterceptedFrame) -> bool:
        """Whether a whole frame matches, with its keys and values decoded."""
        records = frame.context.hub.records
        if records is None:
            return self(frame)
        return await records.holds(self._filter, frame.row, frame.exchange)

    def _filter(self, known: Known) -> Filter:
        """Return the filter, made when frames come: only their proxy knows schemas."""
        if self._whole is None:
            self._whole = Filter(self.bound, known)
        return self._whole


def _demanded(bound: Bound | None, name: str) -> set[str]:
    """Return the values one of which a field must have; nothing where others may do."""
    match bound:
        case Every(terms):
            found = [_demanded(term, name) for term in terms]
            return next(filter(None, found), set())
        case Some(terms):
            found = [_demanded(term, name) for term in terms]
            return set().union(*found) if all(found) else set()
        case Test() if bound.field.name == name and bound.scope != "none":
            if bound.relation == "==" and isinstance(bound.value, str):
                return {bound.value}
            if bound.relation == "in" and all(last is None for _, last in bound.value):
                return {first for first, _ in bound.value}
    return set()


def _settle(bound: Bound, frame: InterceptedFrame) -> bool | None:
    match bound:
        case Every(terms):
            terms_settled = [_settle(term, frame) for term in terms]
            return False if False in terms_settled else None if None in terms_settled else True
        case Some(terms):
            terms_settled = [_settle(term, frame) for term in terms]
            return True if True in terms_settled else None if None in terms_settled else False
        case Unless(term):
            settled = _settle(term, frame)
            return None if settled is None else not settled
        case Test() if not bound.path and bound.field.name in HEAD_FIELDS:
            return Filter(bound)(frame.head_row)
    return None


__all__ = ["Matcher"]
