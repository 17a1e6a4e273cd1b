"""What a user wants of captures: the values of the options that most commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from kafkascope.analyzer.render.times import Mark

Format = Literal["table", "tsv", "csv", "json", "jsonl"]
FORMATS: Final = ("table", "tsv", "csv", "json", "jsonl")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user wants of a capture."""

    inputs: tuple[str, ...]
    filter_text: str
    count: int | None
    """Stop after so many exchanges."""
    begin: Mark | None
    end: Mark | None
    time_format: str
    ports: frozenset[int]
    """Decode as Kafka."""
    output: str | None
    form: Format
    columns: tuple[str, ...]
    """Empty: the usual ones."""
    fields: tuple[str, ...]
    """Of `-T fields`: `-e` names; empty otherwise."""
    field_options: tuple[str, ...]
    sort: str | None
    top: int | None
    quiet: bool
    verbose: bool
    color: Literal["auto", "always", "never"]
    plain: bool
    progress: bool
    both_legs: bool
    raw: bool
    """CSV with text that a spreadsheet may take for a formula."""

    @property
    def selects(self) -> bool:
        """Whether some exchanges are wanted, not all."""
        return bool(self.filter_text or self.begin or self.end or self.count)
