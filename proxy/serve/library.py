"""Captured answers by request: the one to the most similar request of the same API. Sans-I/O."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from analyzer.model import Exchange
from analyzer.session import Session
from dissectors.layout import Layout
from dissectors.reader import Body
from dissectors.walk import leaves

MOST: Final = 256
"""Exchanges of an API that are kept: the similarity of each is computed for each request."""
NEAR: Final = 0.5
"""Share of a request's values that have to be the same; below it the answer is to something
else."""


class Match(NamedTuple):
    """A captured exchange and how near it is."""

    exchange: Exchange
    likeness: float
    """0 to 1."""


class Library:
    """Exchanges with an answer, by API."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._indexes: dict[int, list[int]] = {}
        self._values: dict[int, frozenset[tuple[str, Any]]] = {}

    def add(self, exchange: Exchange, index: int) -> None:
        """Take an exchange in, with its index in the session."""
        if exchange.request is None or exchange.request.decoded is None:
            return
        if exchange.response is None or exchange.response.decoded is None:
            return
        if exchange.api_key is None or exchange.response.decoded.version != exchange.api_version:
            return
        found = self._indexes.setdefault(exchange.api_key, [])
        if len(found) < MOST:
            found.append(index)
            decoded = exchange.request.decoded
            self._values[index] = _values(decoded.layout, decoded.body)

    def nearest(self, key: int, version: int, layout: Layout, body: Body) -> Match | None:
        """The captured exchange whose request says most of the same; of equals the one of the same
        version, then the first."""
        wanted = _values(layout, body)
        best: tuple[float, bool, int] | None = None
        for index in self._indexes.get(key, ()):
            had = self._values[index]
            whole = len(wanted | had)
            likeness = len(wanted & had) / whole if whole else 1.0
            same = self._session.versions[index] == version
            place = (likeness, same, -index)
            if best is None or place > best:
                best = place
        if best is None:
            return None
        return Match(self._session.exchange(-best[2]), best[0])


def _values(layout: Layout, body: Body) -> frozenset[tuple[str, Any]]:
    """Fields and their values, wherever in arrays they stand; volatile ones say nothing."""
    found = set()
    for leaf in leaves(layout, body):
        if leaf.slot.field.volatile or leaf.slot.wire is None:
            continue
        path = ".".join(part for part in leaf.path.split(".") if not part.isdigit())
        value = leaf.value
        if isinstance(value, list | dict):
            value = str(value)
        found.add((path, value))
    return frozenset(found)
