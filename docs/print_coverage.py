"""Print docs/coverage.md: which versions of which APIs were met on the wire.

    python docs/print_coverage.py [CAPTURE...]

What was met is kept in docs/coverage.txt; captures that are named add to it. The interop tests make
such captures from real brokers and clients.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.history import when
from kafkascope.dissectors.reference.releases import span

HERE = Path(__file__).parent
SEEN, TARGET = HERE / "coverage.txt", HERE / "coverage.md"

HEAD = """\
# Coverage

Which versions of which APIs were seen on the wire, both ways, decoded to the last byte: in captures
of real brokers from 0.8.0 to 4.4 and of a dozen client libraries. Printed by `make docs` from
`docs/coverage.txt`, which `python docs/print_coverage.py CAPTURE...` adds to.

Versions that only made-up bytes cover are those of the last column. They are held against the
protocol tables, against kio and against Kafka's own Java classes like all others
(`tests/dissectors`, `tests/interop`).

"""

Met = dict[tuple[str, int], set[str]]
"""(API, version) -> of "request", "response"."""


def load() -> Met:
    """What was met so far."""
    met: Met = {}
    if SEEN.exists():
        for line in SEEN.read_text().splitlines():
            name, version, *sides = line.split()
            met[name, int(version)] = set(sides)
    return met


def add(met: Met, captures: Iterable[str]) -> None:
    """Add what captures hold, as far as it is decoded to the last byte."""
    from kafkascope.analyzer.exchanges.offline import open_capture

    for name in captures:
        with open_capture([name]) as capture:
            for exchange in capture.exchanges():
                api = registry.APIS.get(exchange.api_key if exchange.api_key is not None else -1)
                version = exchange.api_version
                if api is None or version is None or version not in api.versions:
                    continue
                whole = {note.side for note in exchange.undecoded}
                for side in ("request", "response"):
                    message = getattr(exchange, side)
                    if message is not None and message.body is not None and side not in whole:
                        met.setdefault((api.name, version), set()).add(side)


def save(met: Met) -> None:
    """Write what was met, one pair a line."""
    keys = {api.name: key for key, api in registry.APIS.items()}
    order = sorted(met, key=lambda pair: (keys[pair[0]], pair[1]))
    lines = [f"{name} {v} {' '.join(sorted(met[name, v]))}\n" for name, v in order]
    SEEN.write_text("".join(lines))


def document(met: Met) -> str:
    """The whole text."""
    pairs = [
        (api.name, v)
        for api in registry.APIS.values()
        for v in range(api.versions.low, api.versions.high + 1)
    ]
    both = [pair for pair in pairs if len(met.get(pair, ())) == 2]
    lines = [f"{len(both)} of {len(pairs)} (API, version) pairs were seen both ways.\n\n"]
    lines.append("| API | versions | seen both ways | one way | made-up bytes only |\n")
    lines.append("| --- | --- | --- | --- | --- |\n")
    for key, api in registry.APIS.items():
        versions = list(range(api.versions.low, api.versions.high + 1))
        sides = {v: met.get((api.name, v), set()) for v in versions}
        full = _ranges([v for v in versions if len(sides[v]) == 2])
        part = ", ".join(f"{v} ({''.join(sides[v])})" for v in versions if len(sides[v]) == 1)
        none = [v for v in versions if not sides[v]]
        why = "; ".join(f"{v} ({when(span(api.name, v))})" for v in none)
        lines.append(f"| {api.name} ({key}) | {api.versions} | {full} | {part} | {why} |\n")
    return HEAD + "".join(lines)


def _ranges(numbers: list[int]) -> str:
    """[0, 1, 2, 5] as "0-2, 5"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


if __name__ == "__main__":
    found = load()
    if len(sys.argv) > 1:
        add(found, sys.argv[1:])
        save(found)
    TARGET.write_text(document(found))
