"""Triggers say when a rule that matches fires: once, the nth time, the first n, every nth, by
chance."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

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
    _chance: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    @property
    def over(self) -> bool:
        """Whether it will never fire again."""
        limit = {"once": 1, "first": self.number, "nth": self.number}.get(self.kind)
        return limit is not None and self.matched >= limit

    def fire(self) -> bool:
        """Count a match. Returns whether the rule fires."""
        self.matched += 1
        match self.kind:
            case "once" | "first":
                now = self.matched <= (1 if self.kind == "once" else self.number)
            case "nth":
                now = self.matched == self.number
            case "every":
                now = self.matched % self.number == 0
            case "chance":
                now = self._chance.random() < self.probability
            case _:
                now = True
        self.fired += now
        return now

    def take_back(self) -> None:
        """Uncount a match: the frame could not be changed as wanted."""
        self.matched -= 1
        self.fired -= 1

    def __str__(self) -> str:
        match self.kind:
            case "always":
                return ""
            case "once":
                return "once"
            case "chance":
                seed = "" if self.seed is None else f" seed={self.seed}"
                return f"p={self.probability:g}{seed}"
            case kind:
                return f"{kind} {self.number}"


def take_trigger(words: list[str]) -> Trigger:
    """Parse the trigger at the end of the words and remove its words; `ValueError` with a
    sentence."""
    if words and words[-1] == "once":
        words.pop()
        return Trigger("once")
    if len(words) >= 2 and words[-2] in ("nth", "first", "every"):
        count = words.pop()
        kind = words.pop()
        if not count.isdecimal() or int(count) < 1:
            raise ValueError(f"{kind!r} takes a number of at least 1, not {count!r}")
        return Trigger(kind, int(count))
    seed = None
    if words and words[-1].startswith("seed="):
        text = words.pop().removeprefix("seed=")
        if not text.lstrip("-").isdecimal():
            raise ValueError(f"seed= takes a whole number, not {text!r}")
        seed = int(text)
    if words and words[-1].startswith("p="):
        text = words.pop().removeprefix("p=")
        try:
            probability = float(text)
        except ValueError:
            probability = -1.0
        if not 0 <= probability <= 1:
            raise ValueError(f"p= takes a probability above 0 and up to 1, not {text!r}")
        if not probability:
            raise ValueError(f"p={text} never fires: use a probability above 0")
        return Trigger("chance", probability=probability, seed=seed)
    if seed is not None:
        raise ValueError("seed= needs p= before it")
    return Trigger()
