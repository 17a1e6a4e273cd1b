"""The fault that ends a connection within a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from kafkascope.analyzer.filter.values import size
from kafkascope.proxy.rules.actions import BROKER, CLIENT
from kafkascope.proxy.rules.faults.fault import Action, FaultError
from kafkascope.proxy.rules.verdicts import Close

if TYPE_CHECKING:
    from kafkascope.proxy.rules.intercepted import InterceptedFrame


class TruncateAction(Action):
    """Cuts a frame short, then closes the connection."""

    word = "truncate"
    usage = "truncate BYTES"
    doc = "forward this many bytes, size field included, then close the connection"
    sides = (BROKER, CLIENT)
    whole = True

    def __init__(self, first: int) -> None:
        self._first = first

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """`100`, `4KB`."""
        if len(words) != 1:
            raise FaultError(f"{cls.usage}, not {' '.join(words)!r}")
        return cls(size(words[0]))

    def act(self, frame: InterceptedFrame) -> Close:
        """Send the start of the frame, then close."""
        return Close("fin", max(0, self._first))

    def __str__(self) -> str:
        return f"{self.word} {self._first}"
