"""Colour rules of the user: filter -> style of the row, in a file beside the settings. The first
filter that selects a row colours it; only rows that are drawn are filtered.

    # ~/.config/kafkascope/colours.toml
    "@slow" = "bold mark"
    'topic contains ".dlq"' = "error"
    "client == legacy-job" = "black on #e69f00"
"""

from __future__ import annotations

import time
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.errors import StyleSyntaxError
from rich.style import Style

from kafkascope.analyzer.filter.bind import fields_of
from kafkascope.analyzer.filter.fields import DECODED
from kafkascope.analyzer.filter.known import Known
from kafkascope.analyzer.filter.language import Filter, FilterError, compile_filter, cost
from kafkascope.analyzer.filter.saved import spelled
from kafkascope.analyzer.session.rows import row_of_columns
from kafkascope.captures.errors import CaptureError
from kafkascope.places import config_home
from kafkascope.tui.data.store import Store
from kafkascope.tui.limits import LIMITS
from kafkascope.tui.settings.config import read_toml
from kafkascope.tui.settings.palette import STYLES

ROLES: Final = frozenset({"error", "note", "label", "mark", "good", "wait", "bar"})
"""Names of colours that can be read on a dark and on a light background."""
# Rows whose rules are remembered.
KEPT: Final = 5_000
NO_RULE: Final = -1


class ColourRule(NamedTuple):
    """One line of the file."""

    text: str
    words: str
    """The style, as the user wrote it."""
    wanted: Filter
    reads: bool
    """Whether messages have to be read for it."""


def colours_path() -> Path:
    return config_home() / "colours.toml"


def style_of(words: str) -> Style:
    """Parse a style; `ValueError` for an invalid or an unreadable one."""
    spelt = [_colour(word) for word in words.split()]
    try:
        style = Style.parse(" ".join(spelt))
    except StyleSyntaxError as error:
        raise ValueError(str(error)) from None
    if not style:
        raise ValueError('a style is wanted, such as "bold", "error", "black on #e69f00"')
    if style.blink or style.blink2 or style.conceal or style.link:
        raise ValueError("no blinking, no hiding, no links")
    return style


def _colour(word: str) -> str:
    colour = STYLES[word].color if word in ROLES else None
    return word if colour is None else colour.name


class Colours:
    """Applies the rules to rows."""

    def __init__(self, store: Store, known: Known) -> None:
        self.store, self.known = store, known
        self.rules: list[ColourRule] = []
        self.said = ""
        """A sentence about what is wrong with the file."""
        self._found: dict[int, int] = {}
        """Number of an exchange -> place of its rule."""

    def read(self, path: Path | None = None) -> None:
        """Read the rules. Never fails: wrong ones are left out and told in `said`."""
        path = path or colours_path()
        self.rules, self.said = [], ""
        self.forget()
        try:
            table = read_toml(path)
        except ValueError as error:
            self.said = f"{error}: no colour rules"
            return
        wrong: list[str] = []
        for text, words in table.items():
            made = _rule(text, words, self.known)
            if isinstance(made, str):
                wrong.append(f'"{text}": {made}')
            elif len(self.rules) < LIMITS.colour_rules:
                self.rules.append(made)
            else:
                wrong.append(f"more than {LIMITS.colour_rules} rules")
                break
        if wrong:
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            self.said = f"{path}: {wrong[0]}{more}"

    def forget(self) -> None:
        """Forget which rules selected rows, as that may have changed."""
        self._found.clear()

    def use(self, word: str) -> bool:
        return any(word in rule.text for rule in self.rules)

    def style(self, index: int) -> Style | None:
        """Return the style of a row; None for the usual one, and when finding its rule takes too
        long now."""
        if not self.rules:
            return None
        number = self.store.session.columns["number"][index]
        place = self._found.get(number)
        if place is None:
            place = self._place(index)
            if place is None:
                self.store.waiting = True
                return None
            if len(self._found) >= KEPT:
                self._found.clear()
            self._found[number] = place
        return None if place == NO_RULE else style_of(self.rules[place].words)

    def _place(self, index: int) -> int | None:
        session, budget = self.store.session, self.store.budget
        row, read = row_of_columns(session, index), cache(partial(session.exchange, index))
        before = session.columns["time_ns"][index - 1] if index else None
        for place, rule in enumerate(self.rules):
            if rule.reads and not budget.left():
                return None
            begun = time.monotonic()
            rule.wanted.before_ns = before
            try:
                if rule.wanted(row, read() if rule.reads else None):
                    return place
            except CaptureError:
                continue  # its bytes are gone
            finally:
                if rule.reads:
                    budget.took(time.monotonic() - begun)
        return NO_RULE


def _rule(text: str, words: Any, known: Known) -> ColourRule | str:
    if not isinstance(words, str):
        return "a filter and a style in quotes are wanted"
    try:
        style_of(words)
        wanted = compile_filter(spelled(text), known)
    except FilterError as error:
        return f"{error.reason} at column {error.column}"
    except ValueError as error:
        return str(error)
    bound = wanted.bound
    if bound is None:
        return "an empty filter wants every row"
    if fields_of(bound) & DECODED:
        # Somebody may have to be asked for a schema, and drawing never waits.
        return "rows are coloured without keys and values decoded with a schema"
    return ColourRule(text, words, wanted, cost(bound) == "b")
