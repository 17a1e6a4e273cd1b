"""Lines of CSV: text that no spreadsheet takes for a formula and no terminal obeys."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Any, Final

from kafkascope.analyzer.text import escaped

# https://owasp.org/www-community/attacks/CSV_Injection; the wide ones in East Asian settings.
_FORMULA: Final = re.compile(r"\s*[=+\-@＝＋－＠]")
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def csv_line(cells: Iterable[Any], *, raw: bool = False) -> str:
    """One line with its line feed. `raw`: without the sign that keeps text from being a formula."""
    import csv

    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([csv_cell(cell, raw=raw) for cell in cells])
    return out.getvalue()


def csv_cell(value: Any, *, raw: bool = False) -> Any:
    r"""The value as a cell. In text what does not print is an escape (`\n`, `\x1b`) and backslashes
    are doubled; a `'` begins text that a spreadsheet would run. Numbers stay numbers."""
    if not isinstance(value, str):
        return value
    return as_text(one_line(value), raw=raw)


def one_line(text: str) -> str:
    """The text with escapes for what does not print, and for backslashes."""
    return escaped(text.replace("\\", "\\\\"), data=True)


def as_text(text: str, *, raw: bool = False) -> str:
    """The text with a `'` before it where a spreadsheet would take it for a formula."""
    if raw or not _FORMULA.match(text) or _NUMBER.fullmatch(text):
        return text
    return f"'{text}"
