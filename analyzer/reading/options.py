"""Values of the options that most commands share."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from kafkascope.analyzer.render.times import Mark

Format = Literal[
    "table", "tsv", "csv", "json", "jsonl", "junit", "sarif", "github", "mermaid", "dot", "asyncapi"
]
FORMATS: Final = ("table", "tsv", "csv", "json", "jsonl")
"""Formats of rows."""
REPORTS: Final = ("junit", "sarif", "github")
"""Formats of findings, for CI systems."""
DRAWINGS: Final = ("mermaid", "dot", "asyncapi")
"""Formats of the map of applications."""


class SchemaOptions(NamedTuple):
    """Where schemas of keys and values come from."""

    folders: tuple[str, ...] = ()
    """Folders with one file per id."""
    assigned: tuple[str, ...] = ()
    """`TOPIC[:key]=FILE[#MESSAGE]`, for topics whose records carry no id."""
    registry: str | None = None
    """Address of the registry."""
    ca: str | None = None
    """CA bundle for the registry, instead of the system's."""
    off: bool = False
    """Whether keys and values are not decoded."""

    def words(self) -> list[str]:
        words = []
        for name, values in (
            ("--schemas", self.folders),
            ("--schema", self.assigned),
            ("--registry", (self.registry,)),
            ("--registry-ca", (self.ca,)),
        ):
            for value in values:
                words += [] if value is None else [name, value]
        return words + ["--no-schemas"] * self.off


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The user's options for reading captures."""

    inputs: tuple[str, ...]
    filter_text: str = ""
    count: int | None = None
    """Stop after this number of exchanges."""
    begin: Mark | None = None
    end: Mark | None = None
    time_format: str = "a"
    ports: frozenset[int] = frozenset()
    """Ports to decode as Kafka."""
    output: str | None = None
    form: Format = "table"
    columns: tuple[str, ...] = ()
    """Empty for the default columns."""
    wide: bool = False
    """Whether tables on a terminal show all columns, and lines longer than it."""
    fields: tuple[str, ...] = ()
    """Fields of `-e` for `-T fields`; empty otherwise."""
    field_options: tuple[str, ...] = ()
    sort: str | None = None
    top: int | None = None
    quiet: bool = False
    verbose: bool = False
    color: Literal["auto", "always", "never"] = "auto"
    plain: bool = False
    progress: bool = False
    both_legs: bool = False
    zone: str = ""
    """Time zone of request logs whose times have none."""
    keylog: tuple[str, ...] = ()
    """Paths of the key logs."""
    raw: bool = False
    """Whether CSV keeps text that a spreadsheet may take for a formula."""
    schemas: SchemaOptions = field(default_factory=SchemaOptions)
    """Options for decoding keys and values."""
    jobs: int = 0
    """Number of processes; 0: as many as there are cores, for large files."""

    def source(self) -> str:
        """Return the inputs, and the options that change how they are read, as words of a shell.
        `CAPTURE` replaces a pipe, which cannot be read again."""
        words = ["CAPTURE" if name == "-" else name for name in self.inputs]
        words += [word for port in sorted(self.ports) for word in ("-d", f"tcp.port=={port},kafka")]
        words += [word for path in self.keylog for word in ("--keylog", path)]
        words += ["--time-zone", self.zone] if self.zone else []
        return shlex.join(words)

    @property
    def selects(self) -> bool:
        """Whether the options select some of the exchanges."""
        return bool(self.filter_text or self.begin or self.end or self.count)
