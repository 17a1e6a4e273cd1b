"""Where samples, captures and documents are, and what captures hold as exchanges and rows."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.model import Exchange

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SAMPLES = ROOT / "captures" / "samples"
"""Captures that the README and the demo use."""
CAPTURES = ROOT / "tests" / "analyzer" / "captures"
"""Captures of troubles: its README says how each was made."""
TLS = CAPTURES / "tls"
CAUSES = CAPTURES / "causes"
ALL_CAPTURES = sorted(
    path
    for folder in (SAMPLES, CAPTURES)
    for path in folder.rglob("*.pcap*")
    if path.suffix != ".json"
)


def row_with(**columns: Any) -> Row:
    """Return a row whose other columns are empty."""
    empty = {"str": "", "int": 0, "bool": False}
    for column in fields(Row):
        kind = str(column.type)
        columns.setdefault(column.name, empty.get(kind, () if kind.startswith("tuple") else None))
    return Row(**columns)


def phrases(text: str) -> list[str]:
    """Return the parts of a text that ends of lines, or two spaces or more, separate."""
    return re.split(r"\s*\n\s*| {2,}", text.strip())


def capture_of(name: str, folder: Path = CAPTURES) -> Path:
    """Return the capture of a name, whatever its format and compression."""
    return next(folder.glob(f"{name}.pcap*"))


def exchanges_of(*paths: Path, **options: Any) -> list[Any]:
    """Return all exchanges of captures, which have to be undamaged."""
    with open_capture(list(paths), **options) as capture:
        found = list(capture.exchanges())
        assert capture.damage is None
    return found


def pairs_of(*paths: Path, **options: Any) -> list[tuple[Row, Exchange]]:
    """Return all exchanges of captures with their rows."""
    with open_capture(list(paths), **options) as capture:
        names = capture.context.names
        return [(row_of(each, names), each) for each in capture.exchanges()]


def rows_of(*paths: Path, **options: Any) -> list[Row]:
    """Return the rows of all exchanges of captures."""
    return [row for row, _ in pairs_of(*paths, **options)]


FOLDERS = ("docs", "captures", "tests", "benchmarks", "proxy", "bindings")


DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *(path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.md"))),
]
