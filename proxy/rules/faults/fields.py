"""The action that gives fields of passing messages other values."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self

from kafkascope.analyzer.filter.paths import known
from kafkascope.dissectors.codec.places import (
    Elements,
    Place,
    Step,
    changed_at,
    fitting,
    place_of,
    spelled,
    text_of,
    value_of,
    wire_at,
)
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import BytesWire, Layout, NumberWire, Wire
from kafkascope.dissectors.registry import APIS, layout_of, write_layout
from kafkascope.proxy.rules.actions import BROKER, CLIENT
from kafkascope.proxy.rules.faults.fault import Action, FaultError
from kafkascope.proxy.rules.verdicts import Replace, Verdict

if TYPE_CHECKING:
    from kafkascope.proxy.rules.intercepted import InterceptedFrame

Operator = Literal["=", "+=", "-=", "*="]
OPERATORS: Final[tuple[Operator, ...]] = ("=", "+=", "-=", "*=")
_INDEXES: Final = re.compile(r"\[[^\]]*\]")


class Assignment(NamedTuple):
    """A place, and the value that it gets."""

    place: Place
    how: Operator
    value: Any

    def fits(self, layout: Layout) -> bool:
        """Return whether a version has the place, and the value may stand there."""
        return self.refusal(layout) is None

    def refusal(self, layout: Layout) -> str | None:
        """Return why a version cannot have it; None when it can."""
        wire = wire_at(layout, self.place)
        if wire is None:
            return "no such field"
        if isinstance(wire, BytesWire) and wire.records:
            return "records are changed with `records`"
        if self.how != "=" and not isinstance(wire, NumberWire):
            return f"{self.how} is for numbers"
        try:
            fitting(wire, self.value if self.how == "=" else 0)
        except DissectError as error:
            return error.reason
        return None

    def applied(self, wire: Wire, value: Any) -> Any:
        """Return the new value of a place; `Malformed` when it does not fit."""
        match self.how:
            case "=":
                return fitting(wire, self.value)
            case "+=":
                return fitting(wire, value + self.value)
            case "-=":
                return fitting(wire, value - self.value)
            case _:
                return fitting(wire, value * self.value)

    def __str__(self) -> str:
        return f"{text_of(self.place)} {self.how} {spelled(self.value)}"


class SetAction(Action):
    """Gives fields other values."""

    word = "set"
    usage = "set request.FIELD = VALUE, ... | set response.FIELD += NUMBER"
    doc = "set fields with =, numbers also with +=, -=, *=; commas separate several"
    sides: tuple[int, ...] = (CLIENT, BROKER)
    picky = True
    whole = True

    def __init__(self, side: int, assignments: tuple[Assignment, ...]) -> None:
        self.sides = (side,)
        self._assignments = assignments

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """`request.max_wait_ms = 1`, `response.responses[*].partitions[*].high_watermark += 10`."""
        parts: list[list[str]] = [[]]
        for word in words:
            parts[-1].append(word.removesuffix(","))
            if word.endswith(","):
                parts.append([])
        found = [_assignment(part, cls.usage) for part in parts]
        sides = {side for side, _ in found}
        if len(sides) > 1:
            raise FaultError("a rule changes either requests or responses: write two rules")
        return cls(CLIENT if sides == {"request"} else BROKER, tuple(each for _, each in found))

    def can_harm(self, key: int, version: int, side: int) -> bool:
        """Whether that version has all of the fields, and the values fit."""
        layout = _layout(key, version, side)
        return all(each.fits(layout) for each in self._assignments)

    def unable(self, key: int, version: int, side: int) -> str:
        """Which field it lacks, or which value does not fit."""
        layout, name = _layout(key, version, side), f"{APIS[key].name} {version}"
        kind = "request" if side == CLIENT else "response"
        found = ((each, each.refusal(layout)) for each in self._assignments)
        return next((f"{kind}.{each} in {name}: {why}" for each, why in found if why), "")

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        """Replace the frame by one with other values."""
        decoded = frame.decoded
        if decoded is None or frame.payload is None:
            return None
        body, spots = decoded.body, 0
        try:
            for each in self._assignments:
                body, count = changed_at(decoded.layout, body, each.place, each.applied)
                spots += count
            if not spots:
                return None
            written = write_layout(decoded.layout, body)
        except (DissectError, OverflowError, MemoryError) as error:
            reason = error.reason if isinstance(error, DissectError) else "it is too large"
            tell_once(frame, self, reason)
            return None
        return Replace(frame.payload[: decoded.body_at] + written + frame.payload[decoded.end :])

    def __str__(self) -> str:
        kind = "request" if self.sides == (CLIENT,) else "response"
        return f"{self.word} " + ", ".join(f"{kind}.{each}" for each in self._assignments)


def tell_once(frame: InterceptedFrame, action: Action, reason: str) -> None:
    """Say, once for each version of an API, that an action does not fit its frames."""
    name = APIS[frame.key].name if frame.key in APIS else f"Api {frame.key}"
    text = (
        f"{action} does not apply to {name} v{frame.version}, which is forwarded unchanged: "
        f"{reason}"
    )
    frame.context.hub.once(f"misfit {action} {frame.key} {frame.version} {reason}", text)


def _layout(key: int, version: int, side: int) -> Layout:
    kind = "Request" if side == CLIENT else "Response"
    return layout_of(f"{APIS[key].name}{kind}", version)


def _assignment(words: list[str], usage: str) -> tuple[str, Assignment]:
    """Read `request.max_wait_ms = 1`: the side, and what is assigned."""
    at = next((i for i, word in enumerate(words) if word in OPERATORS), None)
    if at is None or at != 1 or len(words) < 3:
        raise FaultError(f"{usage}, not {' '.join(words)!r}")
    side, dot, path = words[0].partition(".")
    if side not in ("request", "response") or not dot:
        raise FaultError(f"a field begins with request. or response., not {words[0]!r}")
    how: Operator = words[1]  # type: ignore[assignment]
    found = Assignment(place_of(path), how, value_of(" ".join(words[2:])))
    if how != "=" and not isinstance(found.value, int | float):
        raise FaultError(f"{how} takes a number, not {found.value!r}")
    _demand(side, path, found)
    return side, found


def _demand(side: str, path: str, assignment: Assignment) -> None:
    """Raise `FaultError` where no version of any message can have it."""
    kind: Literal["request", "response"] = "request" if side == "request" else "response"
    name = _INDEXES.sub("", path)
    if name not in known(kind):
        near = get_close_matches(name, known(kind), n=1)
        hint = f"; did you mean {side}.{near[0]}?" if near else ""
        raise FaultError(f"no {side} has a field {name!r}{hint}")
    reasons = set()
    everywhere = assignment._replace(place=tuple(map(_any_element, assignment.place)))
    for api in APIS.values():
        for version in range(api.versions.high, api.versions.low - 1, -1):
            layout = layout_of(f"{api.name}{kind.capitalize()}", version)
            reason = assignment.refusal(layout)
            if reason is None:
                return
            reasons.add(reason)
            if everywhere.fits(layout):
                reasons.add("its elements have no such field to select by, or no such value")
    told = sorted(reasons - {"no such field"}) or ["an array has elements: [*], [0]"]
    raise FaultError(f"{side}.{assignment}: {told[0]}")


def _any_element(step: Step) -> Step:
    return Elements() if isinstance(step, Elements) else step
