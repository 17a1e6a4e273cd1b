"""A fault is a filter, an action and a trigger. One class for all; the actions are in the other
modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from kafkascope.analyzer.conversation.tampering import BETWEEN, FAULT
from kafkascope.dissectors.registry import APIS
from kafkascope.proxy.rules.actions import BROKER, CLIENT
from kafkascope.proxy.rules.matching import Matcher
from kafkascope.proxy.rules.triggers import Trigger
from kafkascope.proxy.rules.verdicts import Soon, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.proxy.engine.hub import Hub
    from kafkascope.proxy.rules.intercepted import InterceptedFrame
    from kafkascope.proxy.rules.rules import Look

SIDES: Final = {"request": CLIENT, "response": BROKER}


class FaultError(ValueError):
    """A fault that is not possible, in a sentence."""


class Action:
    """What a fault does to a frame. Subclasses are in the modules beside this one, and in
    `FAULTS`."""

    word: ClassVar[str]
    usage: ClassVar[str]
    doc: ClassVar[str]
    sides: tuple[int, ...] = (CLIENT, BROKER)
    """On which frames it can act; the first is the default."""
    picky: ClassVar[bool] = False
    """There are APIs whose frames it cannot harm: `can_harm` says which it can."""
    whole: ClassVar[bool] = False
    """It needs the whole frame."""

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """Parse the words behind the action's name; `FaultError` or `ValueError` with a
        sentence."""
        if words:
            raise FaultError(f"{cls.word!r} takes no arguments, not {' '.join(words)!r}")
        return cls()

    def can_harm(self, key: int, version: int, side: int) -> bool:
        """Whether it can do something to frames of that version of an API."""
        return True

    def unable(self, key: int, version: int, side: int) -> str:
        """Why it can do nothing to them; empty where there is no more to say."""
        return ""

    def misfit(self, topics: Iterable[str], payloads: Payloads) -> str | None:
        """Why it fits what schemas say of none of these topics; None when it may."""
        return None

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        """The verdict about a frame that matches. None: this frame cannot be harmed this way."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.word


class Fault:
    """A rule that does harm on purpose."""

    def __init__(
        self,
        matcher: Matcher,
        action: Action,
        trigger: Trigger | None = None,
        side: int | None = None,
        name: str = "",
    ) -> None:
        """`FaultError` when the action cannot act on that side, or no frame of it can match.
        Without a side it is the first of the action's on which frames can match."""
        self.matcher = matcher
        self.action = action
        self.trigger = trigger or Trigger()
        sides = action.sides if side is None else (side,)
        if side is not None and side not in action.sides:
            kind = "responses" if side == BROKER else "requests"
            raise FaultError(f"{action.word!r} cannot act on {kind}")
        can_harm = action.can_harm if action.picky else None
        refused = {each: matcher.refusal(each, can_harm, action.unable) for each in sides}
        able = [each for each in sides if refused[each] is None]
        if not able:
            raise FaultError(f"{action.word!r} would never act: {refused[sides[0]]}")
        self.side = able[0]
        self.name = name or str(self)
        self._harmable: dict[tuple[int, int], bool] = {}
        """By API key and version."""
        self.companions: tuple[Fault, ...] = ()
        """Rules that come and go with it, under its name."""

    def __str__(self) -> str:
        side = ""
        if self.side != self.action.sides[0]:
            side = " on " + ("response" if self.side == BROKER else "request")
        trigger = f" {self.trigger}" if str(self.trigger) else ""
        return f"{self.matcher.text.strip()} -> {self.action}{side}{trigger}".strip()

    def check(self, hub: Hub) -> None:
        """Raise `FaultError` where schemas that the proxy knows are against it."""
        payloads = hub.payloads()
        topics = sorted(self.matcher.topics)
        if payloads is not None and (reason := self.action.misfit(topics, payloads)):
            raise FaultError(f"{self.action} applies to {reason}")

    def look(self, frame: InterceptedFrame) -> Look:
        """See `rules.Rule`."""
        if self.trigger.over:
            return "no"
        settled = self.matcher.by_head(frame)
        if settled is False:
            return "no"
        return "whole" if settled is None or self.action.whole else "head"

    def indifferent(self, frame: InterceptedFrame) -> bool:
        """Whether the fault never cares for frames with such a head: see `rules.Chain.quiet`."""
        return self.matcher.by_head(frame) is False

    def judge(self, frame: InterceptedFrame) -> Verdict | Soon | None:
        """See `rules.Rule`."""
        settled = self.matcher.by_head(frame)
        if settled is None and self.matcher.decodes:
            return Soon(self._decided(frame))
        if settled is False or (settled is None and not self.matcher(frame)):
            return None
        return self._act(frame)

    async def _decided(self, frame: InterceptedFrame) -> Verdict | None:
        return self._act(frame) if await self.matcher.decided(frame) else None

    def _act(self, frame: InterceptedFrame) -> Verdict | None:
        if not self._can_harm(frame.key, frame.version) or not self.trigger.fire():
            return None
        verdict = self.action.act(frame)
        if verdict is None:
            self.trigger.take_back()
            return None
        if frame.uncounted:
            self.trigger.take_back()
            return verdict
        frame.context.hub.metrics.add("faults_total", self.name)
        frame.context.hub.changed()
        what = f"{FAULT}{self.action}"
        if what not in frame.comment:  # an action may have said more
            frame.comment = f"{frame.comment}{BETWEEN}{what}" if frame.comment else what
        return verdict

    def _can_harm(self, key: int, version: int) -> bool:
        """Whether the action finds something in such frames; others do not count."""
        if not self.action.picky:
            return True
        found = self._harmable.get((key, version))
        if found is None:
            if key not in APIS or version not in APIS[key].versions:
                return False  # not kept: a client may send any
            found = self._harmable[key, version] = self.action.can_harm(key, version, self.side)
        return found

    def to_json(self) -> dict[str, Any]:
        """The fault as the control channel shows it."""
        return {
            "name": self.name,
            "rule": str(self),
            "side": "request" if self.side == CLIENT else "response",
            "action": self.action.word,
            "matched": self.trigger.matched,
            "fired": self.trigger.fired,
        }
