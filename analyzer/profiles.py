"""What a whole capture says, API by API: versions, counts, and which values each field has had. Two
profiles side by side show what one client does that another does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from analyzer.model import Exchange, Request, Response
from dissectors.layout import BytesWire
from dissectors.registry import APIS
from dissectors.values import Uuid
from dissectors.walk import Leaf, leaves

VALUES: Final = 8
"""Distinct values of a field that are kept; with more it counts as "various"."""
TEXT: Final = 40
MESSAGES: Final = 2_000
"""Of an API whose fields are looked at: what a client says it has said by then."""


@dataclass(slots=True)
class Seen:
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
    errors: Counter[int] = field(default_factory=Counter)
    fields: dict[str, Seen] = field(default_factory=dict)
    """By path, with [] for elements; those of requests begin with "request.", answers' with
    "response."."""
    requests: int = 0
    unanswered: int = 0


class Profile:
    """Accumulates exchanges. `sides`: whose fields are looked at."""

    def __init__(self, sides: tuple[str, ...] = ("request",)) -> None:
        self.apis: dict[str, ApiProfile] = {}
        self._sides = sides

    def add(self, exchange: Exchange) -> None:
        """Take an exchange in."""
        if exchange.api_key not in APIS:
            return
        api = self.apis.setdefault(exchange.api, ApiProfile())
        api.requests += 1
        if exchange.api_version is not None:
            api.versions[exchange.api_version] += 1
        if exchange.state in ("open", "lost"):
            api.unanswered += 1
        if api.requests <= MESSAGES:
            for side in self._sides:
                self._fields(
                    api, side, exchange.request if side == "request" else exchange.response
                )

    def _fields(self, api: ApiProfile, side: str, message: Request | Response | None) -> None:
        if message is None or message.decoded is None:
            return
        decoded = message.decoded
        told: dict[str, set[str]] = {}
        volatile = set()
        for leaf in leaves(decoded.layout, decoded.body):
            path = f"{side}." + ".".join(
                "[]" if part.isdigit() else part for part in leaf.path.split(".")
            )
            told.setdefault(path.replace(".[]", "[]"), set()).add(_text(leaf))
            if leaf.slot.field.volatile:
                volatile.add(path.replace(".[]", "[]"))
        for path, texts in told.items():
            seen = api.fields.setdefault(path, Seen(volatile=path in volatile))
            for text in texts:
                seen.add(text)


def _text(leaf: Leaf) -> str:
    """What of a value is compared: of names and data only whether they are there, for two captures
    are rarely about the same topics."""
    wire, value = leaf.slot.wire, leaf.value
    if value is not None and (leaf.slot.field.entity or leaf.slot.field.subject):
        return f"a {leaf.slot.field.entity or leaf.slot.field.subject}" if value != "" else '""'
    if value is None:
        return "null"
    if isinstance(value, Uuid):
        return str(value)
    if isinstance(value, bytes):
        if isinstance(wire, BytesWire) and wire.records:
            return "records" if value else "no records"
        return "bytes" if value else "no bytes"
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= TEXT else f'"{value[:TEXT]}..."'
    return str(value).lower() if isinstance(value, bool) else str(value)


class Contrast(NamedTuple):
    """One thing that two captures do differently."""

    api: str
    what: str
    """versions, requests, unanswered, or the path of a field."""
    left: str
    right: str


def contrasts(left: Profile, right: Profile, *, strict: bool = False) -> Iterator[Contrast]:
    """What differs, APIs in the order of their keys. Fields count when their values differ as
    sets; volatile ones with `strict` only."""
    names = {api.name: key for key, api in APIS.items()}
    for name in sorted(left.apis.keys() | right.apis.keys(), key=lambda name: names[name]):
        a, b = left.apis.get(name), right.apis.get(name)
        if a is None or b is None:
            yield Contrast(name, "requests", _count(a), _count(b))
            continue
        if a.versions.keys() != b.versions.keys():
            yield Contrast(name, "versions", _versions(a), _versions(b))
        if bool(a.unanswered) != bool(b.unanswered):
            yield Contrast(name, "unanswered", str(a.unanswered), str(b.unanswered))
        for path in [*a.fields, *(path for path in b.fields if path not in a.fields)]:
            one, two = a.fields.get(path), b.fields.get(path)
            if (one or two).volatile and not strict:  # type: ignore[union-attr]
                continue
            if one is None or two is None or _differs(one, two):
                yield Contrast(name, path, _values(one), _values(two))


def _differs(one: Seen, two: Seen) -> bool:
    if one.various and two.various:
        return False
    return one.values.keys() != two.values.keys() or one.various != two.various


def _values(seen: Seen | None) -> str:
    return "-" if seen is None else str(seen)


def _count(api: ApiProfile | None) -> str:
    return "-" if api is None else str(api.requests)


def _versions(api: ApiProfile) -> str:
    return ", ".join(f"v{version}" for version in sorted(api.versions))
