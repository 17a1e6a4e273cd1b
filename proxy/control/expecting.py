"""`expect`: what was recorded, held against an expectation, in a process beside the proxy.

It is a process of its own so that dissection never takes the forwarding process's time. It starts
with the first expectation and stays for the others: a line with an expectation goes in, a line with
the verdict comes out.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from kafkascope.proxy import answers
from kafkascope.proxy.control.nearest import Nearest

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.reading.options import SchemaOptions

EXCHANGES: Final = 100
"""In an answer, unless another number is wanted."""
MOST_EXCHANGES: Final = 10_000
MOST_BYTES: Final = 32 << 20
"""Of the exchanges in an answer."""
LONGEST_S: Final = 3600.0
LOOK_S: Final = 0.05
"""Between two looks at what is recorded."""


class Expected(NamedTuple):
    """An expectation about the traffic."""

    filter: str = ""
    wanted: int | None = None
    """How many exchanges must match; None: some."""
    since_ns: int = 0
    """Only exchanges that began then or later are looked at."""
    within_s: float = 0.0
    """How long it may take until it is met."""
    limit: int = EXCHANGES
    """How many matching exchanges are wanted in the answer."""

    @classmethod
    def of(cls, request: dict[str, Any]) -> Self:
        """Read the members of a request; `ValueError` with what is wrong."""
        text = request.get("filter")
        if not (text is None or isinstance(text, str)):
            raise ValueError(f"`filter` is text, not {type(text).__name__}")
        from kafkascope.analyzer.filter.saved import spelled

        count = request.get("count")
        return cls(
            spelled(text or ""),
            None if count is None else _natural("count", count),
            _natural("since_ns", request.get("since_ns", 0)),
            _seconds("within", request.get("within", 0)),
            min(_natural("limit", request.get("limit", EXCHANGES)), MOST_EXCHANGES),
        )

    def is_met_by(self, found: int) -> bool:
        """Return whether this number of matching exchanges is the wanted one."""
        return found > 0 if self.wanted is None else found == self.wanted

    def sentence(self, found: int, sent: dict[str, int], nearest: str = "") -> str:
        """Return what is wrong, with what was sent instead; empty where nothing is. `nearest`: a
        line about the request that came nearest."""
        if self.is_met_by(found):
            return ""
        many = "no request" if not found else "1 request" if found == 1 else f"{found} requests"
        wanted = f", not {self.wanted}," if found else ""
        which = f" with {self.filter}" if self.filter else ""
        census = ", ".join(f"{number} {name}" for name, number in sent.items())
        text = f"{many}{wanted}{which}; there were {census or 'none at all'}"
        return f"{text}\n{nearest}" if nearest and not found else text


def _natural(name: str, value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"`{name}` is a number from 0 on, not {value!r}")
    return value


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ValueError(f"`{name}` is seconds, not {value!r}")
    return min(float(value), LONGEST_S)


class Judges:
    """The process that reads recordings; one, from the first expectation on."""

    def __init__(self, schemas: SchemaOptions) -> None:
        """`schemas`: what keys and values are decoded with."""
        self._schemas = schemas
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None

    async def judge(
        self, expected: Expected, recorded: Callable[[], Awaitable[list[str]]]
    ) -> dict[str, Any]:
        """Return the members of the answer, once the expectation is met or its time is over.
        `recorded` returns the files that hold all that has passed. Raise `ValueError`."""
        end = time.monotonic() + expected.within_s
        while True:
            files = await recorded()
            if not files:
                raise ValueError("nothing is recorded: start the proxy with -w FILE")
            told = await self._ask({"files": files, **expected._asdict()})
            if told["met"] or time.monotonic() > end:
                return told
            await asyncio.sleep(LOOK_S)

    async def _ask(self, line: dict[str, Any]) -> dict[str, Any]:
        async with self._turn:
            if self._process is None or self._process.returncode is not None:
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", __name__, json.dumps(self._schemas)),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    limit=answers.MAX_LINE,
                    start_new_session=True,  # ctrl+c is for the proxy, which ends this one's input
                )
            process = self._process
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(json.dumps(line).encode() + b"\n")
                await process.stdin.drain()
                answer = await process.stdout.readline()
            except BaseException:
                # Whoever asks next must not get this answer.
                await self._end()
                raise
        if not answer:
            await self._end()
            raise ValueError("the process that reads the recording has ended")
        told: dict[str, Any] = json.loads(answer)
        if "error" in told:
            raise ValueError(told["error"])
        return told

    async def close(self) -> None:
        """End the process."""
        await self._end()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()


def judged(files: list[str], expected: Expected, schemas: SchemaOptions) -> dict[str, Any]:
    """Read recordings, and return the members of the answer."""
    from kafkascope.analyzer.exchanges.row_json import json_of_row
    from kafkascope.analyzer.reading.options import ReadOptions
    from kafkascope.analyzer.reading.reading import Reading

    census: Counter[str] = Counter()

    def every(row: Row, exchange: Exchange) -> None:
        if row.time_ns >= expected.since_ns:
            census[f"{row.api} v{row.api_version}"] += 1
            nearest.see(row, exchange)

    options = ReadOptions(
        tuple(files), filter_text=expected.filter, quiet=True, jobs=1, schemas=schemas
    )
    found, size = 0, 0
    exchanges: list[Any] = []
    with Reading(options) as reading:
        nearest = Nearest(expected.filter)  # a wrong filter has been refused
        reading.every = every
        for row, _ in reading.rows():
            if row.time_ns < expected.since_ns:
                continue
            found += 1
            if len(exchanges) < expected.limit and size < MOST_BYTES:
                line = json_of_row(row)
                size += len(line)
                exchanges.append(json.loads(line))
    sent = dict(sorted(census.items()))
    return {
        "met": expected.is_met_by(found),
        "found": found,
        "text": expected.sentence(found, sent, str(nearest)),
        "sent": sent,
        "exchanges": exchanges,
    }


def main() -> None:
    """Run as that process."""
    import click

    from kafkascope.analyzer.reading.options import SchemaOptions
    from kafkascope.analyzer.terminal import json_out
    from kafkascope.errors import Error

    folders, assigned, *others = json.loads(sys.argv[1])
    schemas = SchemaOptions(tuple(folders), tuple(assigned), *others)
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        files = asked.pop("files")
        try:
            told = judged(files, Expected(**asked), schemas)
        except click.ClickException as error:
            told = {"error": error.format_message()}
        except (Error, OSError, ValueError) as error:
            told = {"error": str(error)}
        json_out(answers.written(told)[:-1])


if __name__ == "__main__":
    main()
