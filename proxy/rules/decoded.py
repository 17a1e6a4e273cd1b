"""Filters about keys and values that are decoded by schema, held against frames: in a thread, since
records may be many and long. Only schemas that are known count; nobody is waited for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.filter.known import Known

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.filter.decoded.reading import Decoding
    from kafkascope.analyzer.filter.language import Filter
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.payloads.model import SchemaKey

MOST_BYTES: Final = 16 << 20
"""Bytes of keys, values and headers of one frame that rules look at; records behind them count as
if they were not there."""
MOST_SECONDS: Final = 1.0
"""For the records of one frame: others wait behind it, and checks by JSON Schema take long."""


class DecodedRecords:
    """Decodes the records of frames for rules, those of one frame after those of the other."""

    def __init__(
        self,
        decoding: Callable[[Callable[[int], bool]], Decoding],
        look: Callable[[Exchange], None],
        lacking: Callable[[SchemaKey], None],
        cut: Callable[[], None],
    ) -> None:
        """`decoding`: called once, in the thread, with what says when a frame was looked at
        enough. `look`: sees each exchange there before it is
        decoded. `lacking`: told, in the event loop, which schemas nobody knows; `cut`: that a frame
        had more than is looked at."""
        self._make = decoding
        self._look, self._lacking, self._cut = look, lacking, cut
        self._known: Known | None = None
        self._until = 0.0
        self._pool: ThreadPoolExecutor | None = None

    async def holds(self, wanted: Callable[[Known], Filter], row: Row, exchange: Exchange) -> bool:
        """Return whether a filter holds for a frame. `wanted`: makes it in the thread, of what
        decodes there."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "decoded")
        loop = asyncio.get_running_loop()
        found, unknown, cut = await loop.run_in_executor(
            self._pool, self._holds, wanted, row, exchange
        )
        for key in unknown:
            self._lacking(key)
        if cut:
            self._cut()
        return found

    def _holds(
        self, wanted: Callable[[Known], Filter], row: Row, exchange: Exchange
    ) -> tuple[bool, list[SchemaKey], bool]:
        if self._known is None:
            self._known = Known(decoding=self._make(self._enough))
        decoding = self._known.decoding
        assert decoding is not None
        self._look(exchange)
        self._until = time.monotonic() + MOST_SECONDS
        decoding.begin()
        found = wanted(self._known)(row, exchange)
        return found, list(decoding.unknown), decoding.cut

    def _enough(self, size: int) -> bool:
        return size > MOST_BYTES or time.monotonic() > self._until

    def close(self) -> None:
        """Decode no more."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None  # the proxy may start again
