"""Where a proxy has schemas from: the user's options, a registry, and records of registries' topics
that rules look at.

A registry is asked in a thread, for what keys and values name; until it has answered, they name
something unknown.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

from kafkascope.analyzer.filter.known import Known
from kafkascope.analyzer.reading.options import SchemaOptions
from kafkascope.proxy.limits import LIMITS
from kafkascope.schemas.known import IncomingSchemas

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.exchanges.seen_schemas import SeenSchemas
    from kafkascope.analyzer.filter.language import Filter
    from kafkascope.analyzer.model import Exchange
    from kafkascope.proxy.hub import Hub
    from kafkascope.schemas.decoding import Payloads
    from kafkascope.schemas.model import Schema, SchemaKey


class LateSchemas(IncomingSchemas):
    """Schemas that come while the proxy runs."""

    def __init__(self, ask: Callable[[SchemaKey], list[Schema]] | None) -> None:
        """`ask`: asks a registry, in a thread; it may take its time."""
        super().__init__()
        self._ask = ask
        self._requested: set[SchemaKey] = set()
        self._queue: queue.SimpleQueue[SchemaKey | None] = queue.SimpleQueue()
        """None: the proxy has ended."""

    def want(self, key: SchemaKey) -> None:
        """Have the registry asked, once; never waits."""
        with self._lock:
            if (
                self._ask is None
                or key in self._requested
                or len(self._requested) >= LIMITS.registry_ids
            ):
                return
            begun = bool(self._requested)
            self._requested.add(key)
        self._queue.put(key)
        if not begun:
            threading.Thread(target=self._run, name="schemas", daemon=True).start()

    def _run(self) -> None:
        assert self._ask is not None
        while (key := self._queue.get()) is not None:
            self.take(self._ask(key))

    def close(self) -> None:
        """Ask no more; a proxy that starts again asks for what it wants then."""
        with self._lock:
            begun = bool(self._requested)
            self._requested.clear()
        if begun:
            self._queue.put(None)


class ProxySchemas:
    """The schemas of one proxy, and what decodes with them: for rules, and for held frames.

    The records of frames are decoded for rules one frame after the other, in a thread: they may be
    many and long. Only known schemas count; nothing waits for a registry."""

    def __init__(self, hub: Hub, options: SchemaOptions) -> None:
        """Reads the files that the options name; a usage error where they are wrong."""
        self._hub, self.options = hub, options
        ask = None
        if options.registry is not None:
            from kafkascope.analyzer.reading.schemas import registry_of

            ask = registry_of(options, lambda problem: hub.once(problem, problem))
        self.late = LateSchemas(ask)
        self._held = self._payloads(quiet=False) if options.words() else None
        self._until = 0.0
        self._pool: ThreadPoolExecutor | None = None

    def close(self) -> None:
        self.late.close()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None  # the proxy may start again

    @property
    def held(self) -> Payloads | None:
        """What decodes the keys and values of held frames, in the event loop; None while there is
        no schema at all."""
        if self._held is None and self.late.changes:
            self._held = self._payloads()
        return self._held

    def _payloads(self, *, quiet: bool = True) -> Payloads:
        from kafkascope.analyzer.reading.schemas import known_of
        from kafkascope.schemas.decoding import Payloads

        known = known_of(self.options, quiet=quiet, want=self.late.want)
        known.grows(self.late)
        return Payloads(known)

    async def holds(
        self, make_filter: Callable[[Known], Filter], row: Row, exchange: Exchange
    ) -> bool:
        """Return whether a filter holds for a frame. `make_filter`: makes it in the thread, of what
        decodes there."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "decoded")
        loop = asyncio.get_running_loop()
        found, unknown, cut = await loop.run_in_executor(
            self._pool, self._holds, make_filter, row, exchange
        )
        hint = "; it is requested from the registry" if self.options.registry is not None else ""
        for key in unknown:
            self._hub.once(
                f"schema {key}",
                f"no schema with {key}{hint}: rules about decoded keys and values do not match "
                "its records",
            )
        if cut:
            limits = self._hub.limits
            self._hub.once(
                "decoded records",
                f"a frame has more records than {limits.rule_record_bytes >> 20} MB, or than can "
                f"be decoded in {limits.rule_record_s:g} s: rules about decoded keys and values "
                "see only the first ones",
            )
        return found

    def _holds(
        self, make_filter: Callable[[Known], Filter], row: Row, exchange: Exchange
    ) -> tuple[bool, list[SchemaKey], bool]:
        # Records of a registry's topic may be the schemas of others.
        before = self._seen.changes
        self._seen.exchange(exchange)
        if self._seen.changes != before:
            self.late.take(self._seen.since(before))
        self._until = time.monotonic() + self._hub.limits.rule_record_s
        decoding = self._known.decoding
        assert decoding is not None
        decoding.begin()
        found = make_filter(self._known)(row, exchange)
        return found, list(decoding.unknown), decoding.cut

    @cached_property
    def _known(self) -> Known:
        from kafkascope.analyzer.filter.decoded.reading import Decoding

        payloads = self._payloads()

        def enough(size: int) -> bool:
            return size > self._hub.limits.rule_record_bytes or time.monotonic() > self._until

        return Known(decoding=Decoding(lambda: payloads, lambda: self._hub.names, enough=enough))

    @cached_property
    def _seen(self) -> SeenSchemas:
        from kafkascope.analyzer.exchanges.seen_schemas import SeenSchemas

        return SeenSchemas(self._hub.names)
