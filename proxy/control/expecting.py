"""`expect`: what was recorded, held against an expectation, in a process beside the proxy.

It is a process of its own (`verdicts`) so that dissection never takes the forwarding process's
time. It starts with the first expectation and stays for the others: a line with an expectation goes
in, a line with the verdict comes out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from kafkascope.proxy.limits import LIMITS

if TYPE_CHECKING:
    from kafkascope.analyzer.reading.options import SchemaOptions

KINDS: Final = ("exchanges", "records", "findings")
# Between two looks at what is recorded.
LOOK_S: Final = 0.05
VERDICTS: Final = "kafkascope.proxy.control.verdicts"


class Expected(NamedTuple):
    """An expectation about the traffic."""

    of: str = "exchanges"
    """One of `KINDS`."""
    filter: str = ""
    wanted: int | None = None
    """How many must match; None: some."""
    since_ns: int = 0
    """Only exchanges that began then or later are looked at."""
    within_s: float = 0.0
    """How long it may take until it is met."""
    limit: int = LIMITS.expected_listed
    """How many of those that match are wanted in the answer."""
    level: str = "chat"
    """The minimum severity of a finding that matches."""
    allow: tuple[str, ...] = ()
    """Rules whose findings do not match."""

    @classmethod
    def of_request(cls, request: dict[str, Any]) -> Self:
        """Read the members of a request; `ValueError` with what is wrong."""
        text = request.get("filter")
        if not (text is None or isinstance(text, str)):
            raise ValueError("`filter` must be a string")
        from kafkascope.analyzer.filter.saved import spelled

        of, count = request.get("of", "exchanges"), request.get("count")
        within, allow = request.get("within", 0), request.get("allow", [])
        limit = request.get("limit", LIMITS.expected_listed)
        number = isinstance(within, int | float) and not isinstance(within, bool)
        named = isinstance(allow, list) and all(isinstance(each, str) for each in allow)
        _checked("of", of, of in KINDS, f"one of {', '.join(KINDS)}")
        _checked("within", within, number and within >= 0, "seconds")
        _checked("allow", allow, named, "a list of names")
        return cls(
            of,
            spelled(text or ""),
            None if count is None else _natural("count", count),
            _natural("since_ns", request.get("since_ns", 0)),
            min(float(within), LIMITS.expected_s),
            min(_natural("limit", limit), LIMITS.expected_listed_most),
            str(request.get("level", "chat")),
            tuple(allow),
        )

    def is_met_by(self, found: int) -> bool:
        return found > 0 if self.wanted is None else found == self.wanted


def _checked(name: str, value: Any, fits: bool, what: str) -> Any:
    if not fits:
        raise ValueError(f"`{name}` must be {what}, not {value!r}")
    return value


def _natural(name: str, value: Any) -> int:
    fits = type(value) is int and value >= 0
    return int(_checked(name, value, fits, "0 or a positive number"))


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
            verdict = await self._ask({"files": files, **expected._asdict()})
            if verdict["met"] or time.monotonic() > end:
                return verdict
            await asyncio.sleep(LOOK_S)

    async def _ask(self, line: dict[str, Any]) -> dict[str, Any]:
        async with self._turn:
            if self._process is None or _has_ended(self._process):
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", VERDICTS, json.dumps(self._schemas)),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    limit=LIMITS.control_line_bytes,
                    start_new_session=True,  # ctrl+c is for the proxy, which ends this one's input
                )
            process = self._process
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(json.dumps(line).encode() + b"\n")
                await process.stdin.drain()
                answer = await process.stdout.readline()
            except OSError:
                answer = b""  # it was killed, and we have not heard of it yet
            except BaseException:
                # Whoever asks next must not get this answer.
                await self.close()
                raise
        if not answer:
            await self.close()
            raise ValueError("the process that reads the recording has ended")
        verdict: dict[str, Any] = json.loads(answer)
        if "error" in verdict:
            raise ValueError(verdict["error"])
        return verdict

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _has_ended(process: asyncio.subprocess.Process) -> bool:
    # Its stdin may close before the loop reports its exit, and uvloop refuses writes to it then.
    assert process.stdin is not None
    return process.returncode is not None or process.stdin.is_closing()
