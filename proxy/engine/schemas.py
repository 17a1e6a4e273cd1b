"""Where a proxy has schemas from: the user's options, a registry, and records of registries' topics
that rules look at.

A registry is asked in a thread, for what keys and values name; until it has answered, they name
something unknown.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.payloads.told import ToldSchemas
from kafkascope.analyzer.reading.options import SchemaOptions
from kafkascope.proxy.rules.decoded import MOST_BYTES, MOST_SECONDS, DecodedRecords

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.seen_schemas import SeenSchemas
    from kafkascope.analyzer.filter.decoded.reading import Decoding
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.analyzer.payloads.model import Schema, SchemaKey
    from kafkascope.proxy.engine.hub import Hub

MOST_WANTED: Final = 10_000
"""Ids that a registry is asked for: what looks like an id may be anything."""


class LateSchemas:
    """Schemas that come while the proxy runs: `known.Growing`."""

    def __init__(self, ask: Callable[[SchemaKey], list[Schema]] | None) -> None:
        """`ask`: asks a registry, in a thread; it may take its time."""
        self._ask = ask
        self._told = ToldSchemas()
        self._lock = threading.Lock()
        self._wanted: set[SchemaKey] = set()
        self._queue: queue.SimpleQueue[SchemaKey | None] = queue.SimpleQueue()
        """None: the proxy has ended."""

    @property
    def changes(self) -> int:
        """Goes up when there are more."""
        return self._told.changes

    def since(self, changes: int) -> list[Schema]:
        """Return those that came since `changes` had this value."""
        return self._told.since(changes)

    def add(self, schemas: list[Schema]) -> None:
        """Take more of them."""
        self._told.take(schemas)

    def want(self, key: SchemaKey) -> None:
        """Have the registry asked, once; never waits."""
        with self._lock:
            if self._ask is None or key in self._wanted or len(self._wanted) >= MOST_WANTED:
                return
            begun = bool(self._wanted)
            self._wanted.add(key)
        self._queue.put(key)
        if not begun:
            threading.Thread(target=self._run, name="schemas", daemon=True).start()

    def _run(self) -> None:
        assert self._ask is not None
        while (key := self._queue.get()) is not None:
            self.add(self._ask(key))

    def close(self) -> None:
        """Ask no more; a proxy that starts again asks for what it wants then."""
        with self._lock:
            begun = bool(self._wanted)
            self._wanted.clear()
        if begun:
            self._queue.put(None)


class ProxySchemas:
    """The schemas of one proxy, and what decodes with them: for rules, and for held frames."""

    def __init__(self, hub: Hub, wanted: SchemaOptions) -> None:
        """Reads the files that the options name; a usage error where they are wrong."""
        self._hub, self.wanted = hub, wanted
        ask = None
        if wanted.registry is not None:
            from kafkascope.analyzer.reading.schemas import registry_of

            ask = registry_of(wanted, lambda problem: hub.once(problem, problem))
        self.late = LateSchemas(ask)
        self._held = self._payloads(quiet=False) if wanted.words() else None
        self.records = DecodedRecords(self._decoding, self._look, self._lacking, self._cut)

    def close(self) -> None:
        """End the threads."""
        self.late.close()
        self.records.close()

    @property
    def held(self) -> Payloads | None:
        """What decodes the keys and values of held frames, in the event loop; None while there is
        no schema at all."""
        if self._held is None and self.late.changes:
            self._held = self._payloads()
        return self._held

    def _payloads(self, *, quiet: bool = True) -> Payloads:
        from kafkascope.analyzer.payloads.decoding import Payloads
        from kafkascope.analyzer.reading.schemas import known_of

        known = known_of(self.wanted, quiet=quiet, want=self.late.want)
        known.grows(self.late)
        return Payloads(known)

    def _decoding(self, enough: Callable[[int], bool]) -> Decoding:
        from kafkascope.analyzer.filter.decoded.reading import Decoding

        payloads = self._payloads()
        return Decoding(lambda: payloads, lambda: self._hub.names, enough=enough)

    @cached_property
    def _seen(self) -> SeenSchemas:
        from kafkascope.analyzer.exchanges.seen_schemas import SeenSchemas

        return SeenSchemas(self._hub.names)

    def _look(self, exchange: Exchange) -> None:
        """Take the schemas in records of a registry's topic; called in the thread of rules."""
        before = self._seen.changes
        self._seen.exchange(exchange)
        if self._seen.changes != before:
            self.late.add(self._seen.since(before))

    def _lacking(self, key: SchemaKey) -> None:
        asked = "; it is requested from the registry" if self.wanted.registry is not None else ""
        self._hub.once(
            f"schema {key}",
            f"no schema with {key}{asked}: rules about decoded keys and values do not match "
            "its records",
        )

    def _cut(self) -> None:
        self._hub.once(
            "decoded records",
            f"a frame has more records than {MOST_BYTES >> 20} MB, or than can be decoded in "
            f"{MOST_SECONDS:g} s: rules about decoded keys and values see only the first ones",
        )
