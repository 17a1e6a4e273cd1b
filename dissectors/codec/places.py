"""Places in bodies, named as in the declarations, and bodies with other values there.

    request.max_wait_ms            topics[0].name            topics[*].partitions[-1]
    responses[*].partitions[partition_index == 3].high_watermark

Stateless; the text of a place knows no version, `wire_at` says what a version has there.
"""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from kafkascope.dissectors.codec.jsonform import dumps, json_value, loads
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import DissectError, Malformed
from kafkascope.dissectors.layout import ArrayWire, Layout, NumberWire, StructWire, Wire

COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_PART: Final = re.compile(r"(?P<name>[a-z_][a-z0-9_]*)|\[(?P<inside>[^\[\]]*)\]")
_CONDITION: Final = re.compile(
    r"\s*(?P<field>[a-z_][a-z0-9_]*)\s*(?P<how>==|!=|<=|>=|<|>)\s*(?P<value>.+?)\s*"
)


class Elements(NamedTuple):
    """All elements of an array, or those whose field compares to a value."""

    field: str = ""
    how: str = ""
    value: Any = None

    def has(self, element: Any) -> bool:
        if not self.field:
            return True
        if not isinstance(element, dict) or self.field not in element:
            return False
        found = element[self.field]
        value = str(self.value) if isinstance(found, str) else self.value
        if isinstance(found, bytes):
            return COMPARISONS[self.how](str(found), value)
        try:
            return COMPARISONS[self.how](found, value)
        except TypeError:
            return False

    def __str__(self) -> str:
        return f"{self.field} {self.how} {spelled(self.value)}" if self.field else "*"


Step: TypeAlias = str | int | Elements
Place: TypeAlias = tuple[Step, ...]
"""From a body to values in it."""


def place_of(text: str) -> Place:
    """Read the text of a place; `ValueError` with a sentence."""
    steps: list[Step] = []
    at = 0
    while at < len(text):
        if steps and text[at] == ".":
            at += 1
        part = _PART.match(text, at)
        if part is None or (part["inside"] is not None and not steps):
            raise ValueError(f"{text!r} names no field: see `kafkascope grammar`")
        at = part.end()
        steps.append(part["name"] if part["name"] else _inside(part["inside"]))
    if not steps or not isinstance(steps[-1], str | int | Elements):
        raise ValueError(f"{text!r} names no field")
    return tuple(steps)


def _inside(text: str) -> Step:
    if text.strip() == "*":
        return Elements()
    if re.fullmatch(r"\s*-?\d+\s*", text):
        return int(text)
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise ValueError(f"[{text}] is no element: [*], [0], [-1] or [partition == 3]")
    return Elements(found["field"], found["how"], value_of(found["value"]))


def value_of(text: str) -> Any:
    """Read a value: JSON, or a bare word or text in single quotes as text."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    try:
        return loads(text)
    except ValueError:
        return text


def spelled(value: Any) -> str:
    """Write a value so that `value_of` reads it again."""
    text = dumps(value).decode()
    if (
        isinstance(value, str)
        and value_of(value) == value
        and not re.search(r"[\s\[\],'\"]", value)
    ):
        return value
    return text


def text_of(place: Place) -> str:
    out = ""
    for step in place:
        out += f".{step}" if isinstance(step, str) else f"[{step}]"
    return out[1:]


def wire_at(layout: Layout, place: Place) -> Wire | None:
    """Return the kind of the values at a place; None where a version has no such field."""
    wire: Wire = layout.body
    for step in place:
        if isinstance(step, str):
            found = _field(wire, step)
            if found is None:
                return None
            wire = found
        else:
            if not isinstance(wire, ArrayWire):
                return None
            wire = wire.element
            if isinstance(step, Elements) and step.field and not _comparable(wire, step):
                return None
    return wire


def _comparable(wire: Wire, step: Elements) -> bool:
    """Return whether elements of a kind have the field that they are chosen by, and it may have the
    value that it is compared to."""
    kind = _field(wire, step.field)
    if kind is None:
        return False
    for value in (step.value, str(step.value)):
        try:
            json_value(kind, value)
        except DissectError:
            continue
        return True
    return False


def _field(wire: Wire, name: str) -> Wire | None:
    slots = (*wire.slots, *wire.tags) if isinstance(wire, StructWire) else ()
    return next((slot.wire for slot in slots if slot.name == name), None)


def fitting(wire: Wire, value: Any) -> Any:
    """Return a value of JSON as bodies have it; `Malformed` where it does not fit the kind."""
    found = json_value(wire, value)
    if isinstance(wire, NumberWire):
        try:
            struct.pack(f">{wire.code}", found)
        except (struct.error, OverflowError):
            raise Malformed(f"{value} is no {wire.name}") from None
    return found


def changed_at(
    layout: Layout, body: Body, place: Place, change: Callable[[Wire, Any], Any]
) -> tuple[Body, int]:
    """Return a body with `change(kind, value)` at a place, and at how many spots that was. Other
    parts are those of `body`, not copies."""
    copy: Body
    copy, count = _changed(layout.body, body, place, change)
    return copy, count


def _changed(
    wire: Wire, value: Any, place: Place, change: Callable[[Wire, Any], Any]
) -> tuple[Any, int]:
    if not place:
        return change(wire, value), 1
    step, rest = place[0], place[1:]
    if isinstance(step, str):
        field = _field(wire, step)
        if field is None or value is None:
            return value, 0
        new, count = _changed(field, value[step], rest, change)
        return ({**value, step: new} if count else value), count
    if not isinstance(wire, ArrayWire) or value is None:
        return value, 0
    out, total = list(value), 0
    for index in _indexes(step, value):
        out[index], count = _changed(wire.element, value[index], rest, change)
        total += count
    return (out if total else value), total


def _indexes(step: int | Elements, elements: list[Any]) -> Iterator[int]:
    if isinstance(step, int):
        if -len(elements) <= step < len(elements):
            yield step % len(elements)
        return
    for index, each in enumerate(elements):
        if step.has(each):
            yield index
