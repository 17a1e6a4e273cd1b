"""The fault that delays frames, by a fixed or random time."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Self

from kafkascope.analyzer.filter.values import duration
from kafkascope.proxy.rules.faults.fault import Action, FaultError
from kafkascope.proxy.rules.verdicts import Delay

if TYPE_CHECKING:
    from kafkascope.proxy.rules.intercepted import InterceptedFrame


class DelayAction(Action):
    """Delays the frame."""

    word = "delay"
    usage = "delay TIME | delay TIME..TIME | delay normal MEAN DEVIATION"
    doc = "delay the frame, and those after it on the connection"

    def __init__(self, low_ns: int, high_ns: int, shape: str, text: str) -> None:
        self._low, self._high, self._shape, self._text = low_ns, high_ns, shape, text
        self._chance = random.Random(low_ns ^ high_ns)

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """`100ms`, `50ms..200ms` (each as likely), `normal 100ms 20ms`."""
        text = " ".join(words)
        if len(words) == 3 and words[0] == "normal":
            return cls(duration(words[1]), duration(words[2]), "normal", text)
        if len(words) != 1:
            raise FaultError(f"{cls.usage}, not {text!r}")
        low, dots, high = words[0].partition("..")
        first = duration(low)
        last = duration(high) if dots else first
        if first < 0 or last < first:
            raise FaultError(f"{words[0]!r} is not a duration")
        return cls(first, last, "uniform", text)

    def act(self, frame: InterceptedFrame) -> Delay:
        """Delay the frame."""
        if self._shape == "normal":
            return Delay(max(0, int(self._chance.gauss(self._low, self._high))))
        return Delay(self._chance.randint(self._low, self._high))

    def __str__(self) -> str:
        return f"{self.word} {self._text}"
