"""The action that gives fields of passing messages other values."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, Self

from kafkascope.analyzer.filter.paths import known
from kafkascope.dissectors.codec import places
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import BytesWire, Layout, NumberWire, Wire
from kafkascope.dissectors.registry import APIS, Decoded, layout_of
from kafkascope.proxy.rules.faults.fault import Action, FaultError
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT

OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "=": lambda old, new: new,
    "+=": operator.add,
    "-=": operator.sub,
    "*=": operator.mul,
}
_KINDS: Final = ("request", "response")
_INDEXES: Final = re.compile(r"\[[^\]]*\]")


class Assignment(NamedTuple):
    """A place, and the value that it gets."""

    place: places.Place
    how: str
    """One of `OPERATORS`."""
    value: Any

    def refusal(self, layout: Layout) -> str | None:
        """Return why a version cannot have it; None when it can."""
        wire = places.wire_at(layout, self.place)
        if wire is None:
            return "no such field"
        if isinstance(wire, BytesWire) and wire.records:
            return "records are changed with `records`"
        if self.how != "=" and not isinstance(wire, NumberWire):
            return f"{self.how} is for numbers"
        try:
            places.fitting(wire, self.value if self.how == "=" else 0)
        except DissectError as error:
            return error.reason
        return None

    def applied(self, wire: Wire, value: Any) -> Any:
        return places.fitting(wire, OPERATORS[self.how](value, self.value))

    def __str__(self) -> str:
        return f"{places.text_of(self.place)} {self.how} {places.spelled(self.value)}"


class SetAction(Action):
    """Gives fields other values."""

    word = "set"
    usage = "set request.FIELD = VALUE, ... | set response.FIELD += NUMBER"
    doc = "set fields with =, numbers also with +=, -=, *=; commas separate several"
    sides: tuple[int, ...] = (CLIENT, BROKER)
    whole = True

    def __init__(self, side: int, assignments: tuple[Assignment, ...]) -> None:
        self.sides = (side,)
        self._assignments = assignments
        self.text = ", ".join(f"{_KINDS[side]}.{each}" for each in assignments)

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """`request.max_wait_ms = 1`, `response.responses[*].partitions[*].high_watermark += 10`."""
        parts: list[list[str]] = [[]]
        for word in words:
            parts[-1].append(word.removesuffix(","))
            if word.endswith(","):
                parts.append([])
        found = [_assignment(part) for part in parts]
        sides = {side for side, _ in found}
        if len(sides) > 1:
            raise FaultError("a rule changes either requests or responses: write two rules")
        return cls(CLIENT if sides == {"request"} else BROKER, tuple(each for _, each in found))

    def can_harm(self, key: int, version: int, side: int) -> bool:
        layout = _layout(key, version, side)
        return all(each.refusal(layout) is None for each in self._assignments)

    def unable(self, key: int, version: int, side: int) -> str:
        layout, name = _layout(key, version, side), f"{APIS[key].name} {version}"
        found = ((each, each.refusal(layout)) for each in self._assignments)
        return next((f"{_KINDS[side]}.{each} in {name}: {why}" for each, why in found if why), "")

    def changed(self, frame: InterceptedFrame, decoded: Decoded) -> Body | None:
        body, spots = decoded.body, 0
        for each in self._assignments:
            body, count = places.changed_at(decoded.layout, body, each.place, each.applied)
            spots += count
        return body if spots else None


def _layout(key: int, version: int, side: int) -> Layout:
    return layout_of(f"{APIS[key].name}{_KINDS[side].capitalize()}", version)


def _assignment(words: list[str]) -> tuple[str, Assignment]:
    """Read `request.max_wait_ms = 1`: the side, and what is assigned."""
    at = next((i for i, word in enumerate(words) if word in OPERATORS), None)
    if at is None or at != 1 or len(words) < 3:
        raise SetAction.misused(words)
    side, dot, path = words[0].partition(".")
    if side not in ("request", "response") or not dot:
        raise FaultError(f"a field begins with request. or response., not {words[0]!r}")
    how = words[1]
    found = Assignment(places.place_of(path), how, places.value_of(" ".join(words[2:])))
    if how != "=" and not isinstance(found.value, int | float):
        raise FaultError(f"{how} takes a number, not {found.value!r}")
    _demand(side, path, found)
    return side, found


def _demand(side: str, path: str, assignment: Assignment) -> None:
    """Raise `FaultError` where no version of any message can have it."""
    kind: Literal["request", "response"] = "request" if side == "request" else "response"
    name = _INDEXES.sub("", path)
    if name not in known(kind):
        from difflib import get_close_matches  # only mistakes need it

        near = get_close_matches(name, known(kind), n=1)
        hint = f"; did you mean {side}.{near[0]}?" if near else ""
        raise FaultError(f"no {side} has a field {name!r}{hint}")
    reasons = set()
    steps = (
        places.Elements() if isinstance(step, places.Elements) else step
        for step in assignment.place
    )
    everywhere = assignment._replace(place=tuple(steps))
    for api in APIS.values():
        for version in range(api.versions.high, api.versions.low - 1, -1):
            layout = layout_of(f"{api.name}{kind.capitalize()}", version)
            reason = assignment.refusal(layout)
            if reason is None:
                return
            reasons.add(reason)
            if everywhere.refusal(layout) is None:
                reasons.add("its elements have no such field to select by, or no such value")
    problems = sorted(reasons - {"no such field"}) or ["an array has elements: [*], [0]"]
    raise FaultError(f"{side}.{assignment}: {problems[0]}")
