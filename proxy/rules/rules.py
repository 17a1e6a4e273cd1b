"""The interface of rules, and the chain that asks them in order."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator
from typing import Literal, Protocol

from kafkascope.proxy.hub import Hub
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.verdicts import BROKER, DeferredVerdict, Verdict

Look = Literal["no", "head", "whole"]


class Rule(Protocol):
    """Decides about requests or about responses."""

    name: str
    side: int
    """0: it decides about requests; 1: about responses."""

    def look(self, frame: InterceptedFrame) -> Look:
        """Look at the head alone: is the frame of interest, and does the rule need all of it?"""

    def judge(
        self, frame: InterceptedFrame
    ) -> Verdict | DeferredVerdict | Awaitable[Verdict | None] | None:
        """Decide about a frame. None: let it pass. An awaitable stops only this direction of this
        connection."""


class Chain:
    """The rules of a proxy, asked in order. Changes apply to frames that begin afterwards."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(each for rule in rules for each in _with_companions(rule))
        self._hub: Hub | None = None
        self.edition = 1
        """Another number after each change."""

    def attach(self, hub: Hub) -> None:
        """Connect the chain to a hub, which calls it while it has rules. Rules may refuse what the
        proxy knows, in `check(hub)`: `FaultError`."""
        self._hub = hub
        self._check(self._rules)
        hub.chain = self if self._rules else None

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def _set(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        self.edition += 1
        if self._hub is not None:
            self._hub.chain = self if rules else None
            self._hub.changed()

    def _check(self, rules: Iterable[Rule]) -> None:
        for rule in rules:
            check = getattr(rule, "check", None)
            if check is not None and self._hub is not None:
                check(self._hub)

    def add(self, rule: Rule) -> None:
        self._check([rule])
        self._set((*self._rules, *_with_companions(rule)))

    def remove(self, rule: Rule) -> None:
        gone = _with_companions(rule)
        self._set(tuple(each for each in self._rules if each not in gone))

    def clear(self) -> None:
        self._set(())

    def quiet(self, frame: InterceptedFrame) -> bool:
        """Return whether no rule affects frames, requests or responses, with this frame's head.

        Rules that can decide by the head have `indifferent(frame)`; others see each frame.
        """
        for rule in self._rules:
            indifferent = getattr(rule, "indifferent", None)
            if indifferent is None or not indifferent(frame):
                return False
        return True

    def look(self, frame: InterceptedFrame) -> tuple[list[Rule], bool]:
        """The rules that want to judge a frame, and whether one needs all of it."""
        rules = []
        whole = False
        for rule in self._rules:
            if rule.side == frame.side:
                look = rule.look(frame)
                if look != "no":
                    rules.append(rule)
                    whole = whole or look == "whole"
        return rules, whole

    def responses(self, frame: InterceptedFrame, recorded: bool = False) -> bool:
        """Whether a rule wants to see this request again with its response; in a recording also,
        whether one may keep the response from the client."""
        looks = ("whole", "head") if recorded else ("whole",)
        return any(rule.side == BROKER and rule.look(frame) in looks for rule in self._rules)


def _with_companions(rule: Rule) -> tuple[Rule, ...]:
    return (rule, *getattr(rule, "companions", ()))
