"""All faults, and the parser of the line of text that describes one.

FILTER -> ACTION ARGUMENTS [on request|response] [once | nth N | first N | every N | p=0.1 seed=7]
"""

from __future__ import annotations

import re
from typing import Final

from kafkascope.analyzer.filter.language import FilterError
from kafkascope.proxy.rules.actions import BROKER, CLIENT
from kafkascope.proxy.rules.faults.corrupt import CorruptAction
from kafkascope.proxy.rules.faults.error_code import ErrorAction, StampAction
from kafkascope.proxy.rules.faults.fault import SIDES, Action, Fault, FaultError
from kafkascope.proxy.rules.faults.fields import SetAction
from kafkascope.proxy.rules.faults.latency import DelayAction
from kafkascope.proxy.rules.faults.member import MemberAction
from kafkascope.proxy.rules.faults.plain import (
    BlackHoleAction,
    CloseAction,
    DropAction,
    HalfCloseAction,
    HoldAction,
    ResetAction,
)
from kafkascope.proxy.rules.faults.records import RecordsAction
from kafkascope.proxy.rules.faults.stale import StaleAction
from kafkascope.proxy.rules.faults.throttle import ThrottleAction
from kafkascope.proxy.rules.faults.truncate import TruncateAction
from kafkascope.proxy.rules.faults.versions import VersionsAction
from kafkascope.proxy.rules.matching import Matcher
from kafkascope.proxy.rules.triggers import take_trigger

FAULTS: Final[dict[str, type[Action]]] = {
    action.word: action
    for action in (
        DelayAction,
        ThrottleAction,
        DropAction,
        ErrorAction,
        StampAction,
        ResetAction,
        CloseAction,
        HalfCloseAction,
        TruncateAction,
        CorruptAction,
        SetAction,
        RecordsAction,
        VersionsAction,
        MemberAction,
        StaleAction,
        BlackHoleAction,
        HoldAction,
    )
}


_WORD: Final = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|\[[^\]]*\]|[^\s"'\[]|["'\[])+""")
"""Blanks inside of quotes and brackets are parts of a word."""


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
        from difflib import get_close_matches

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


__all__ = ["BROKER", "CLIENT", "FAULTS", "Action", "Fault", "FaultError", "parse_fault"]
