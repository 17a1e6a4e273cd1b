"""How two outcomes of a command differ, once exchanges have the same numbers in both. No files."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

Outcome = dict[str, str]
"""What a command left: stdout, stderr, exit code, and each file as text."""

NUMBER_KEYS: Final = {"number": 0, "exchange": 0, "slowest": 0, "largest": 0, "connection": 1}
HEADINGS: Final = {"no.": 0} | NUMBER_KEYS
"""Columns of numbers, in JSON and in tables: 0 of an exchange, 1 of a connection."""
CITED: Final = re.compile(
    r"\b(number|conn) (==|!=|in) (\{[\d., ]+\}|\d+)|\b(exchange|connection) (\d+)"
)
BODIES: Final = frozenset({"request", "response", "key", "value"})
KINDS: Final = ("same", "order", "numbers", "else")


class Numbers(NamedTuple):
    """AFTER's numbers -> BEFORE's, of what both have."""

    exchanges: dict[int, int]
    connections: dict[int, int]


def matched(before: str, after: str) -> Numbers:
    """Match the exchanges of two outputs of `ls --json` by `exchange_id`."""
    numbers = Numbers({}, {})
    known = {row["exchange_id"]: row for row in map(json.loads, before.splitlines())}
    for row in map(json.loads, after.splitlines()):
        if found := known.get(row["exchange_id"]):
            numbers.exchanges[row["number"]] = found["number"]
            numbers.connections[row["connection"]] = found["connection"]
    return numbers


def renumbered(text: str, numbers: Numbers | None) -> Iterator[str]:
    """Yield lines with the numbers of BEFORE; None for BEFORE's own, which are only sorted."""

    def mapped(value: int, kind: int) -> int:
        # What BEFORE has not is negative, so that it equals nothing.
        return value if numbers is None else numbers[kind].get(value, -value)

    def cited(match: re.Match[str]) -> str:
        word, operator, cited, one, number = match.groups()
        if one:
            return f"{one} {mapped(int(number), int(one == 'connection'))}"
        members: set[int] = set()
        for part in cited.strip("{}").split(","):
            low, _, high = part.partition("..")
            members.update(range(int(low), int(high or low) + 1))
        found = sorted(mapped(value, int(word == "conn")) for value in members)
        return f"{word} {operator} {found}"

    def walked(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {k: v if k in BODIES else walked(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [walked(item, name) for item in value]
        if isinstance(value, str):
            return CITED.sub(cited, value)
        if type(value) is int and name in NUMBER_KEYS:
            return mapped(value, NUMBER_KEYS[name])
        return value

    columns: dict[int, int] = {}
    for line in text.splitlines():
        if line.startswith('{"'):
            yield json.dumps(walked(json.loads(line)))
            continue
        separator = "\t" if "\t" in line else " | " if line.startswith("|") else ","
        cells = line.split(separator)
        headings = [cell.strip("| ").lower() for cell in cells]
        if len(cells) < 2:
            columns = {}
        elif found := {i: HEADINGS[h] for i, h in enumerate(headings) if h in HEADINGS}:
            columns = found
        for index, kind in columns.items():
            if index < len(cells) and (digits := cells[index].strip("| ")).isdecimal():
                cells[index] = str(mapped(int(digits), kind))
        yield CITED.sub(cited, separator.join(cells))


class Difference(NamedTuple):
    """How two outcomes of a command differ."""

    kind: str
    diff: str
    """The first lines that differ; empty when none does."""


def compare(before: Outcome, after: Outcome, numbers: Numbers) -> Difference:
    """Compare all parts of two outcomes: the worst kind, with the first lines of that kind."""
    worst = Difference("same", "")
    for part in sorted(before.keys() | after.keys()):
        old, new = before.get(part, "(none)"), after.get(part, "(none)")
        if old == new:
            continue
        lines = old.splitlines(), new.splitlines()
        kind = "order"
        if Counter(lines[0]) != Counter(lines[1]):
            mapped = list(renumbered(old, None)), list(renumbered(new, numbers))
            kind = "numbers"
            if Counter(mapped[0]) != Counter(mapped[1]):
                kind, lines = "else", mapped
        if KINDS.index(kind) > KINDS.index(worst.kind):
            worst = Difference(kind, _first(part, kind, *lines))
    return worst


def _first(part: str, kind: str, old: list[str], new: list[str]) -> str:
    """A unified diff of the first two lines that differ, each cut to where they do."""
    gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
    if kind == "else" and (gone or come):
        olds = [line for line in old if line in gone]
        news = [line for line in new if line in come]
        counts = f"{gone.total()} lines only before, {come.total()} only after"
    else:
        pairs = [pair for pair in zip(old, new, strict=False) if pair[0] != pair[1]]
        olds, news = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        counts = f"{len(pairs)} lines"
    a, b = (olds or [""])[0], (news or [""])[0]
    start = next((i for i, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), 0)
    start = max(0, start - 60)
    sides = [sign + line[start : start + 160] for sign, line in (("-", a), ("+", b)) if line]
    return "\n".join([f"@@ {part}: {counts} @@", *sides])
