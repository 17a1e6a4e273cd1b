"""A fault is a filter, an action and a trigger. One class for all; the actions are in the other
modules."""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from kafkascope.analyzer.conversation.tampering import BETWEEN, FAULT
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.registry import APIS, Decoded
from kafkascope.proxy.rules.matching import Matcher, refusal
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, DeferredVerdict, Replace, Verdict
from kafkascope.schemas.model import PayloadError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkascope.proxy.hub import Hub
    from kafkascope.proxy.rules.intercepted import InterceptedFrame
    from kafkascope.proxy.rules.rules import Look
    from kafkascope.schemas.decoding import Payloads

USAGE: Final = (
    ("(none)", "every time"),
    ("once", "only the first time"),
    ("nth N", "only the Nth time"),
    ("first N", "the first N times"),
    ("every N", "every Nth time"),
    ("p=0.1 [seed=7]", "by chance; a seed makes runs repeatable"),
)


@dataclass
class Trigger:
    """Counts matches and says which of them fire."""

    kind: str = "always"
    number: int = 1
    probability: float = 1.0
    seed: int | None = None
    matched: int = 0
    fired: int = 0

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        spans = {
            "once": (1, 1, 1),
            "first": (1, self.number, 1),
            "nth": (self.number, self.number, 1),
            "every": (1, inf, self.number),
        }
        # The first match and the last one that fire, and every how many of them.
        self._first, self._last, self._step = spans.get(self.kind, (1, inf, 1))

    @property
    def over(self) -> bool:
        """Whether it will never fire again."""
        return self.matched >= self._last

    def fire(self) -> bool:
        """Count a match. Returns whether the rule fires."""
        self.matched += 1
        due = self._first <= self.matched <= self._last and self.matched % self._step == 0
        now = due and self._chance.random() < self.probability
        self.fired += now
        return now

    def take_back(self) -> None:
        self.matched -= 1
        self.fired -= 1

    def __str__(self) -> str:
        seed = "" if self.seed is None else f" seed={self.seed}"
        chance = f"p={self.probability:g}{seed}"
        plain = {"always": "", "once": "once", "chance": chance}
        return plain.get(self.kind, f"{self.kind} {self.number}")


def take_trigger(words: list[str]) -> Trigger:
    """Parse the trigger at the end of the words and remove its words; `ValueError` with a
    sentence."""
    if words and words[-1] == "once":
        words.pop()
        return Trigger("once")
    if len(words) >= 2 and words[-2] in ("nth", "first", "every"):
        count, kind = words.pop(), words.pop()
        if not count.isdecimal() or int(count) < 1:
            raise ValueError(f"{kind!r} takes a number of at least 1, not {count!r}")
        return Trigger(kind, int(count))
    seed, chance = _taken(words, "seed="), _taken(words, "p=")
    if seed is not None and not seed.lstrip("-").isdecimal():
        raise ValueError(f"seed= takes a whole number, not {seed!r}")
    if chance is None:
        if seed is not None:
            raise ValueError("seed= needs p= before it")
        return Trigger()
    try:
        probability = float(chance)
    except ValueError:
        probability = -1.0
    if not 0 <= probability <= 1:
        raise ValueError(f"p= takes a probability above 0 and up to 1, not {chance!r}")
    if not probability:
        raise ValueError(f"p={chance} never fires: use a probability above 0")
    return Trigger("chance", probability=probability, seed=None if seed is None else int(seed))


def _taken(words: list[str], name: str) -> str | None:
    """Take the last word, if it is one such as `p=0.1`, and return its value."""
    return words.pop().removeprefix(name) if words and words[-1].startswith(name) else None


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
    whole: ClassVar[bool] = False
    """It needs the whole frame."""
    text: str = ""

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """Parse the words after the action's name; `FaultError` or `ValueError` with a
        sentence."""
        if words:
            raise FaultError(f"{cls.word!r} takes no arguments, not {' '.join(words)!r}")
        return cls()

    @classmethod
    def misused(cls, words: list[str]) -> FaultError:
        given = f"not {' '.join(words)!r}" if words else "nothing follows the action"
        return FaultError(f"write {cls.usage}; {given}")

    def can_harm(self, key: int, version: int, side: int) -> bool:
        """Whether it can do something to frames of that version of an API. Actions that leave this
        as it is can do something to all frames, those of unknown APIs as well."""
        return True

    def unable(self, key: int, version: int, side: int) -> str:
        """Why it can do nothing to them; empty where there is no more to say."""
        return ""

    def misfit(self, topics: Iterable[str], payloads: Payloads) -> str | None:
        """Why it fits what schemas say of none of these topics; None when it may."""
        return None

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        """The verdict about a frame that matches: another body in its place, unless a subclass has
        others. None: this frame cannot be harmed this way."""
        decoded = frame.decoded
        try:
            body = None if decoded is None else self.changed(frame, decoded)
            return None if body is None else Replace(frame.with_body(body))
        except (DissectError, PayloadError, OverflowError, MemoryError) as error:
            self.report_misfit(frame, reason_of(error))
            return None

    def changed(self, frame: InterceptedFrame, decoded: Decoded) -> Body | None:
        """The body that a frame gets; None when it stays as it is."""
        raise NotImplementedError

    def report_misfit(self, frame: InterceptedFrame, reason: str) -> None:
        """Say, once for each version of an API, that the action does not fit its frames."""
        name = APIS[frame.key].name if frame.key in APIS else f"Api {frame.key}"
        text = (
            f"{self} does not apply to {name} v{frame.version}, which is forwarded unchanged: "
            f"{reason}"
        )
        frame.context.hub.once(f"misfit {self} {frame.key} {frame.version} {reason}", text)

    def __str__(self) -> str:
        return f"{self.word} {self.text}".rstrip()


def reason_of(error: Exception) -> str:
    if isinstance(error, PayloadError):
        return f"at {error.path}: {error.text}" if error.path else error.text
    return error.reason if isinstance(error, DissectError) else "it is too large"


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
        self._harms_all = type(action).can_harm is Action.can_harm
        can_harm = None if self._harms_all else action.can_harm
        refused = {each: refusal(matcher.bound, each, can_harm, action.unable) for each in sides}
        able = [each for each in sides if refused[each] is None]
        if not able:
            raise FaultError(f"{action.word!r} would never act: {refused[sides[0]]}")
        self.side = able[0]
        self.name = name or str(self)
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
        if self.trigger.over:
            return "no"
        settled = self.matcher.by_head(frame)
        if settled is False:
            return "no"
        return "whole" if settled is None or self.action.whole else "head"

    def indifferent(self, frame: InterceptedFrame) -> bool:
        """Whether the fault never cares for frames with such a head: see `rules.Chain.quiet`."""
        return self.matcher.by_head(frame) is False

    def judge(self, frame: InterceptedFrame) -> Verdict | DeferredVerdict | None:
        settled = self.matcher.by_head(frame)
        if settled is None and self.matcher.decodes:
            return DeferredVerdict(self._decided(frame))
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
        if self._harms_all:
            return True
        known = key in APIS and version in APIS[key].versions
        return known and self.action.can_harm(key, version, self.side)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rule": str(self),
            "side": "request" if self.side == CLIENT else "response",
            "action": self.action.word,
            "matched": self.trigger.matched,
            "fired": self.trigger.fired,
        }
