"""Profiles a whole capture, API by API: versions, counts, and which values each field has had. Two
profiles side by side show what one client does that another does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafkascope.analyzer.model import Exchange, Request, Response
from kafkascope.dissectors.codec.walk import Leaf, leaves
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import ArrayWire, BytesWire, Layout, NumberWire, StructWire
from kafkascope.dissectors.registry import APIS, layout_of
from kafkascope.dissectors.values import Uuid
from kafkascope.dissectors.zookeeper.types import BASE, BY_NAME, TYPES

# Distinct values of a field that are kept; with more it counts as "various".
VALUES: Final = 8
TEXT: Final = 40
# First requests of a connection that are looked at.
OPENING: Final = 4
# APIs that are listed from where two orders diverge.
AFTER: Final = 4
# Whose openings are kept.
CONNECTIONS: Final = 10_000
# Of an API whose fields are looked at: what a client says it has said by then.
MESSAGES: Final = 2_000


@dataclass(slots=True)
class Tally:
    """The values that a field has had."""

    values: dict[str, int] = field(default_factory=dict)
    """As text, with their number."""
    various: bool = False
    volatile: bool = False

    def add(self, text: str) -> None:
        """One more value."""
        if text in self.values or len(self.values) < VALUES:
            self.values[text] = self.values.get(text, 0) + 1
        else:
            self.various = True

    def __str__(self) -> str:
        texts = list(self.values)
        return ", ".join(texts[:VALUES]) + (", ..." if self.various else "")


@dataclass(slots=True)
class ApiProfile:
    """One API of a capture."""

    versions: Counter[int] = field(default_factory=Counter)
    fields: dict[str, Tally] = field(default_factory=dict)
    """By path, with [] for elements; those of requests begin with "request.", answers' with
    "response."."""
    requests: int = 0
    unanswered: int = 0
    first: int = 0


class Profile:
    """Accumulates exchanges. `sides`: whose fields are looked at."""

    def __init__(self, sides: tuple[str, ...] = ("request",)) -> None:
        self.apis: dict[str, ApiProfile] = {}
        self._sides = sides
        self._openings: dict[int, list[tuple[int, str]]] = {}
        """Connection -> number and name of its first requests."""

    def add(self, exchange: Exchange) -> None:
        """Take an exchange in."""
        if exchange.api_key not in APIS and exchange.zookeeper is None:
            return
        api = self.apis.setdefault(exchange.api, ApiProfile())
        api.requests += 1
        api.first = min(api.first or exchange.number, exchange.number)
        self._open(exchange)
        if exchange.api_version is not None:
            api.versions[exchange.api_version] += 1
        if exchange.state in ("open", "lost"):
            api.unanswered += 1
        if api.requests <= MESSAGES:
            for side in self._sides:
                self._fields(
                    api, side, exchange.request if side == "request" else exchange.response
                )

    def _open(self, exchange: Exchange) -> None:
        number = exchange.connection.number
        if number not in self._openings and len(self._openings) >= CONNECTIONS:
            return
        opening = self._openings.setdefault(number, [])
        version = "" if exchange.api_version is None else f" v{exchange.api_version}"
        opening.append((exchange.number, f"{exchange.api}{version}"))
        if len(opening) > OPENING:
            opening.remove(max(opening))

    def order(self) -> list[str]:
        """APIs in the order of their first requests."""
        return sorted(self.apis, key=lambda name: self.apis[name].first)

    def openings(self) -> list[tuple[str, int]]:
        """How connections begin, and how many do so; the most frequent first."""
        said = (" > ".join(name for _, name in sorted(o)) for o in self._openings.values())
        return Counter(said).most_common()

    def _fields(self, api: ApiProfile, side: str, message: Request | Response | None) -> None:
        if message is None or message.decoded is None:
            return
        decoded = message.decoded
        texts_of: dict[str, set[str]] = {}
        volatile = set()
        for leaf in leaves(decoded.layout, decoded.body):
            path = f"{side}." + ".".join(
                "[]" if part.isdigit() else part for part in leaf.path.split(".")
            )
            texts_of.setdefault(path.replace(".[]", "[]"), set()).add(_text(leaf))
            if leaf.slot.field.volatile:
                volatile.add(path.replace(".[]", "[]"))
        for path, texts in texts_of.items():
            seen = api.fields.setdefault(path, Tally(volatile=path in volatile))
            for text in texts:
                seen.add(text)


def _text(leaf: Leaf) -> str:
    """What of a value is compared: of names and data only whether they are there, for two captures
    are rarely about the same topics."""
    wire, value = leaf.slot.wire, leaf.value
    named = leaf.slot.field.entity or leaf.slot.field.subject
    if value is not None and named and not isinstance(value, bytes):
        return f"a {named}" if value != "" else '""'
    if value is None:
        return "null"
    if isinstance(value, Uuid):
        return str(value)
    if isinstance(value, bytes):
        if isinstance(wire, BytesWire) and wire.records:
            return "records" if value else "no records"
        return "bytes" if value else "no bytes"
    if isinstance(wire, NumberWire) and wire.size == 8 and not isinstance(value, float):
        return "a number" if value >= 0 else str(value)  # offsets, times: those of the data
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= TEXT else f'"{value[:TEXT]}..."'
    return str(value).lower() if isinstance(value, bool) else str(value)


class Contrast(NamedTuple):
    """One thing that two captures do differently."""

    api: str
    what: str
    """versions, requests, unanswered, or the path of a field; of no API: how connections begin and
    in which order the APIs come."""
    left: str
    right: str


def contrasts(left: Profile, right: Profile, *, strict: bool = False) -> Iterator[Contrast]:
    """What differs, APIs in the order of their keys. Fields count when their values differ as
    sets; volatile ones with `strict` only."""
    names = {api.name: key for key, api in APIS.items()}
    names |= {each.name: each.key for each in TYPES.values()}
    yield from _beginnings(left, right)
    for name in sorted(left.apis.keys() | right.apis.keys(), key=lambda name: names.get(name, -1)):
        a, b = left.apis.get(name), right.apis.get(name)
        if a is None or b is None:
            yield Contrast(name, "requests", _count(a), _count(b))
            continue
        if a.versions.keys() != b.versions.keys():
            yield Contrast(name, "versions", _versions(a), _versions(b))
        if bool(a.unanswered) != bool(b.unanswered):
            yield Contrast(name, "unanswered", str(a.unanswered), str(b.unanswered))
        yield from _fields(name, a, b, strict)


def _beginnings(left: Profile, right: Profile) -> Iterator[Contrast]:
    one, two = left.openings(), right.openings()
    if one and two and one[0][0] != two[0][0]:
        texts = (f"{o[0][0]} ({o[0][1]} of {sum(n for _, n in o)} connections)" for o in (one, two))
        yield Contrast("", "connections start with", *texts)
    both = left.apis.keys() & right.apis.keys()
    orders = [[name for name in side.order() if name in both] for side in (left, right)]
    at = next((n for n, pair in enumerate(zip(*orders, strict=True)) if pair[0] != pair[1]), None)
    if at is not None:
        after = f"after {orders[0][at - 1]}: " if at else ""
        shown = (after + ", ".join(order[at : at + AFTER]) for order in orders)
        yield Contrast("", "order of first requests", *shown)


def _fields(name: str, a: ApiProfile, b: ApiProfile, strict: bool) -> Iterator[Contrast]:
    """Fields that both could send, then those that only one side's versions have."""
    lacking = []
    for path in [*a.fields, *(path for path in b.fields if path not in a.fields)]:
        one, two = a.fields.get(path), b.fields.get(path)
        if (one or two).volatile and not strict:  # type: ignore[union-attr]
            continue
        if one is not None and two is not None:
            if _differs(one, two):
                yield Contrast(name, path, str(one), str(two))
            continue
        other = b if two is None else a
        known = _known(name, other, path)
        absent = NEVER if known else f"no such field in {_versions(other)}"
        texts = (absent, str(two)) if one is None else (str(one), absent)
        if known:
            yield Contrast(name, path, *texts)
        else:
            lacking.append(Contrast(name, path, *texts))
    yield from lacking


NEVER: Final = "-"
"""A field that a side could have sent, in an array that it left empty."""


def _known(name: str, api: ApiProfile, path: str) -> bool:
    side, _, rest = path.partition(".")
    found = TYPES.get(BY_NAME.get(name.lower(), 0) - BASE)
    if found is not None:
        record = layout_of(found.request if side == "request" else found.response, 0)
        return _has(record, rest.replace("[]", "").split("."))
    for version in api.versions:
        try:
            layout = layout_of(f"{name}{side.capitalize()}", version)
        except DissectError:
            continue
        if _has(layout, rest.replace("[]", "").split(".")):
            return True
    return False


def _has(layout: Layout, parts: list[str]) -> bool:
    wire: object = layout.body
    for part in parts:
        while isinstance(wire, ArrayWire):
            wire = wire.element
        if not isinstance(wire, StructWire):
            return False
        slots = {slot.name: slot for slot in (*wire.slots, *wire.tags)}
        if part not in slots:
            return False
        wire = slots[part].wire
    return True


def _differs(one: Tally, two: Tally) -> bool:
    if one.various and two.various:
        return False
    return one.values.keys() != two.values.keys() or one.various != two.various


def _count(api: ApiProfile | None) -> str:
    return "-" if api is None else str(api.requests)


def _versions(api: ApiProfile) -> str:
    return ", ".join(f"v{version}" for version in sorted(api.versions))
