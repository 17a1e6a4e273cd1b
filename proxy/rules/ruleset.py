"""Faults from a TOML file.

[[fault]]
name = "lost leader"                               # optional
when = "api == Produce and topic == orders"        # a filter; without it: everything
do = "error NOT_LEADER_OR_FOLLOWER"
trigger = "first 3"                                # optional
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from kafkascope.captures.inputs.small import read_small
from kafkascope.proxy.rules.faults import Fault, FaultError, parse_fault

KEYS: Final = {"name", "when", "do", "trigger"}


def load_rules(path: Path) -> list[Fault]:
    """Load the faults of a file; `FaultError` with file and place."""
    try:
        document = tomllib.loads(read_small(path).decode("utf-8"))
    except OSError as error:
        raise FaultError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FaultError(f"{path}: {error}") from error
    if not isinstance(document.get("fault"), list) or document.keys() - {"fault"}:
        raise FaultError(f"{path}: only [[fault]] tables are allowed")
    return [_fault(path, number, each) for number, each in enumerate(document["fault"], 1)]


def _fault(path: Path, number: int, table: object) -> Fault:
    where = f"{path}: fault {number}"
    if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
        raise FaultError(f"{where}: {', '.join(sorted(KEYS))} are texts")
    unknown = table.keys() - KEYS
    if unknown:
        raise FaultError(f"{where}: there is no {', '.join(sorted(unknown))}")
    if "do" not in table:
        raise FaultError(f"{where}: `do` is missing")
    text = f"{table.get('when', '')} -> {table['do']} {table.get('trigger', '')}".strip()
    try:
        return parse_fault(text, table.get("name", ""))
    except FaultError as error:
        raise FaultError(f"{where}: {error}") from error
