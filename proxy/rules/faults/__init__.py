"""All faults, and the parser of the line of text that describes one.

FILTER -> ACTION ARGUMENTS [on request|response] [once | nth N | first N | every N | p=0.1 seed=7]
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

from kafkascope.analyzer.filter.language import FilterError
from kafkascope.captures.inputs.small import read_limited
from kafkascope.proxy.rules.faults import plain
from kafkascope.proxy.rules.faults.error_code import ErrorAction, StampAction
from kafkascope.proxy.rules.faults.fault import SIDES, Action, Fault, FaultError, take_trigger
from kafkascope.proxy.rules.faults.fields import SetAction
from kafkascope.proxy.rules.faults.records import RecordsAction
from kafkascope.proxy.rules.faults.versions import VersionsAction
from kafkascope.proxy.rules.matching import Matcher
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT

FAULTS: Final[dict[str, type[Action]]] = {
    action.word: action
    for action in (
        plain.DelayAction,
        plain.ThrottleAction,
        plain.DropAction,
        ErrorAction,
        StampAction,
        plain.ResetAction,
        plain.CloseAction,
        plain.HalfCloseAction,
        plain.TruncateAction,
        plain.CorruptAction,
        SetAction,
        RecordsAction,
        VersionsAction,
        plain.MemberAction,
        plain.StaleAction,
        plain.BlackHoleAction,
        plain.HoldAction,
    )
}


# Blanks inside of quotes and brackets are parts of a word.
_WORD: Final = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|\[[^\]]*\]|[^\s"'\[]|["'\[])+""")


TRIGGERS: Final = "A trigger may follow: once, first N, nth N, every N, p=P, or p=P seed=N"


def parse_fault(text: str, name: str = "") -> Fault:
    """Parse a fault; `FaultError` with a sentence."""
    filter_text, arrow, rest = text.rpartition("->")
    if not arrow:
        raise FaultError(f"no -> in {text!r}: write FILTER -> ACTION")
    words = _WORD.findall(rest)
    if not words:
        raise FaultError(f"no action after ->: choose from {', '.join(FAULTS)}")
    word = words.pop(0)
    action = FAULTS.get(word)
    if action is None:
        from difflib import get_close_matches  # only mistakes need it

        near = get_close_matches(word, FAULTS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f": {', '.join(FAULTS)}"
        raise FaultError(f"unknown action {word!r}{hint}")
    try:
        trigger = take_trigger(words)
        side = None
        if len(words) >= 2 and words[-2] == "on" and words[-1] in SIDES:
            side = SIDES[words.pop()]
            words.pop()
        made = Fault(Matcher(filter_text), action.parse(words), trigger, side, name)
        if isinstance(made.action, VersionsAction) and made.side == BROKER:
            # What is not offered is refused, too.
            enforced = Matcher(made.action.followers)
            made.companions = (Fault(enforced, made.action, None, CLIENT, made.name),)
        return made
    except FilterError as error:
        raise FaultError(f"the filter {filter_text.strip()!r}: {error}") from error
    except FaultError as error:
        if ", not " in str(error):
            raise FaultError(f"{error}. {TRIGGERS}") from error
        raise
    except ValueError as error:
        raise FaultError(str(error)) from error


KEYS: Final = {"name", "when", "do", "trigger"}


def load_rules(path: Path) -> list[Fault]:
    """Load the faults of a TOML file; `FaultError` with file and place.

    [[fault]]
    name = "lost leader"                               # optional
    when = "api == Produce and topic == orders"        # a filter; without it: everything
    do = "error NOT_LEADER_OR_FOLLOWER"
    trigger = "first 3"                                # optional
    """
    try:
        document = tomllib.loads(read_limited(path).decode("utf-8"))
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


__all__ = ["FAULTS", "Action", "Fault", "FaultError", "load_rules", "parse_fault"]
