"""Lines of request logs of real brokers, 0.9 to 4.4, and what an independent parser says of them.

`samples.tar.xz` holds parts of logs, some as docker, containerd, kubectl and compose write them,
and `expected.jsonl`: a row for each line, with the bodies that a capture of the same run has for
the same exchange.
"""

import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

from kafkascope.analyzer.requestlog.containers import LineReader
from kafkascope.analyzer.requestlog.limits import LIMITS, RequestLogLimits
from kafkascope.analyzer.requestlog.model import LogLine, Unparsed

SAMPLES = Path(__file__).with_name("samples.tar.xz")


@cache
def sample_files() -> dict[str, bytes]:
    """Return the files by name."""
    files = {}
    with tarfile.open(SAMPLES) as tar:
        for member in tar:
            file = tar.extractfile(member)
            assert file is not None
            files[member.name] = file.read()
    return files


@cache
def expected_rows() -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each file, in the order of its lines."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for line in sample_files()["expected.jsonl"].splitlines():
        row = json.loads(line)
        rows.setdefault(row["file"], []).append(row)
    return rows


def lines_of(
    data: bytes, block: int = 1 << 20, limits: RequestLogLimits = LIMITS
) -> list[LogLine | Unparsed]:
    """Return the lines of a whole file, read in blocks."""
    reader = LineReader(limits)
    lines = []
    for at in range(0, len(data), block):
        lines += reader.feed(data[at : at + block])
    return lines + reader.finish()


def without(body: Any, unknown: set[str], path: str = "") -> Any:
    """Return a body without the fields of these dotted paths."""
    if isinstance(body, dict):
        return {
            name: without(value, unknown, f"{path}{name}.")
            for name, value in body.items()
            if path + name not in unknown
        }
    if isinstance(body, list):
        return [without(value, unknown, path) for value in body]
    return body
