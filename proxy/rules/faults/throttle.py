"""The fault that limits bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from kafkascope.analyzer.filter.values import size
from kafkascope.proxy.rules.faults.fault import Action, FaultError
from kafkascope.proxy.rules.verdicts import Throttle

if TYPE_CHECKING:
    from kafkascope.proxy.rules.intercepted import InterceptedFrame


class ThrottleAction(Action):
    """Forwards frames slowly."""

    word = "throttle"
    usage = "throttle SIZE/s"
    doc = "limit the rate of the frame"

    def __init__(self, bytes_per_s: int, text: str) -> None:
        self._rate, self._text = bytes_per_s, text

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """`100KB/s`, `1MiB/s`."""
        text = " ".join(words)
        amount, slash, unit = text.partition("/")
        if not slash or unit.strip() != "s" or size(amount) < 1:
            raise FaultError(f"{cls.usage}, as in 100KB/s, not {text!r}")
        return cls(size(amount), text)

    def act(self, frame: InterceptedFrame) -> Throttle:
        """Forward the frame slowly."""
        return Throttle(float(self._rate))

    def __str__(self) -> str:
        return f"{self.word} {self._text}"
