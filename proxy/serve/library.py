"""Captured responses, found by the most similar request of the same API. Sans-I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice
from statistics import median
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.session.session import Session
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.codec.walk import leaves
from kafkascope.dissectors.embedded.masking import masked
from kafkascope.dissectors.layout import Layout, Slot

MOST: Final = 256
"""Exchanges of an API that are kept: the similarity of each is computed for each request."""
MOST_LEAVES: Final = 20_000
"""Values of a request that are compared, the first ones."""
MOST_VALUES: Final = 400_000
"""Of all requests that are kept, at 250 bytes each; of an API one is always kept."""
NEAR: Final = 0.5
"""Share of a request's values that have to be the same; below it the response is to something
else."""
LONGEST: Final = 40
"""Characters of a value in a line for people."""
VALUES: Final = 3
"""Values in a line for people."""

Said = tuple[str, Any]
"""A field's path without indexes, and its value."""


class Match(NamedTuple):
    """A captured exchange, and how similar its request is."""

    exchange: Exchange
    likeness: float
    """0 to 1."""
    only_here: list[Said]
    """What the request says and the captured one does not."""
    only_there: list[Said]
    """The reverse."""
    renamed: dict[tuple[str, str], str]
    """(kind of name, name in the captured request) -> the name that stands there now."""


class Library:
    """Exchanges with a response, by API."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._indexes: dict[int, list[int]] = {}
        self._values: dict[int, dict[Said, str]] = {}
        self._kept = 0
        """How many values these are."""
        self._latencies: dict[int, deque[int]] = {}

    def add(self, exchange: Exchange, row: Row) -> None:
        """Add an exchange to the library, and to its session if it may be wanted."""
        if exchange.request is None or exchange.request.decoded is None:
            return
        if exchange.response is None or exchange.response.decoded is None:
            return
        if exchange.api_key is None or exchange.response.decoded.version != exchange.api_version:
            return
        if exchange.latency_ns is not None:
            known = self._latencies.setdefault(exchange.api_key, deque(maxlen=MOST))
            known.append(exchange.latency_ns)
        found = self._indexes.setdefault(exchange.api_key, [])
        if not found or (len(found) < MOST and self._kept < MOST_VALUES):
            decoded = exchange.request.decoded
            values = _values(decoded.layout, decoded.body)
            index = self._session.add(exchange, row)
            found.append(index)
            self._values[index] = values
            self._kept += len(values)

    def latency_s(self, key: int) -> float:
        """The median latency of that API in the capture, in seconds."""
        known = self._latencies.get(key)
        return median(known) / 1e9 if known else 0.0

    def nearest(self, key: int, version: int, layout: Layout, body: Body) -> Match | None:
        """The captured exchange with the most similar request. Of several the one of the same
        version, then the first."""
        wanted = _values(layout, body)
        best: tuple[float, bool, int] | None = None
        for index in self._indexes.get(key, ()):
            had = self._values[index]
            common = len(wanted.keys() & had.keys())
            whole = len(wanted) + len(had) - common
            likeness = common / whole if whole else 1.0
            same = self._session.columns["api_version"][index] == version
            place = (likeness, same, -index)
            if best is None or place > best:
                best = place
        if best is None:
            return None
        had = self._values[-best[2]]
        here = [each for each in wanted if each not in had]
        there = [each for each in had if each not in wanted]
        renamed = _renamed(here, there, wanted)
        return Match(self._session.exchange(-best[2]), best[0], here, there, renamed)


def kind_of(slot: Slot) -> str:
    """What a value names: the same in request and response, whatever the fields are called."""
    return slot.field.entity or slot.field.subject or slot.name


def _renamed(
    here: list[Said], there: list[Said], kinds: dict[Said, str]
) -> dict[tuple[str, str], str]:
    """Pairs of names that stand in the same place, in the same order."""
    renamed = {}
    for path in {path for path, _ in here}:
        ours = [each for each in here if each[0] == path]
        theirs = [value for other, value in there if other == path]
        for said, old in zip(ours, theirs, strict=False):
            if isinstance(said[1], str) and isinstance(old, str):
                renamed[kinds[said], old] = said[1]
    return renamed


def brief(said: Iterable[Said]) -> str:
    """Some of these values as text: name=orders, num_partitions=3."""
    short = []
    for path, value in said:
        if value in (None, "", b"", "[]"):
            continue
        text = value.hex() if isinstance(value, bytes) else str(value)
        text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
        short.append(f"{path.rpartition('.')[2]}={text}")
        if len(short) > VALUES:
            short[-1] = "…"
            break
    return ", ".join(short) or "nothing more"


def _values(layout: Layout, body: Body) -> dict[Said, str]:
    """The fields and values of a body in wire order, arrays flattened, each with what it names.
    Volatile ones are left out, secrets are asterisks."""
    found: dict[Said, str] = {}
    for leaf in islice(leaves(layout, masked(layout, body)), MOST_LEAVES):
        if leaf.slot.field.volatile or leaf.slot.wire is None:
            continue
        path = ".".join(part for part in leaf.path.split(".") if not part.isdigit())
        value = leaf.value
        if isinstance(value, list | dict):
            value = str(value)
        found[path, value] = kind_of(leaf.slot)
    return found
