"""Values as cells of tables: short for people, plain for programs; and lines of CSV that no
spreadsheet takes for formulas and no terminal obeys."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.text import escaped
from kafkascope.times import MS, iso_ns

if TYPE_CHECKING:
    from kafkascope.analyzer.filter.fields import Type


def duration(ns: int | None) -> str:
    """`312 µs`, `3.1 ms`, `501 ms`, `2.4 s`, `95 s`."""
    if ns is None:
        return "-"
    if abs(ns) < MS:
        return f"{ns / 1000:.0f} µs"
    if abs(ns) < 10 * MS:
        return f"{ns / MS:.1f} ms"
    if abs(ns) < 1000 * MS:
        return f"{ns / MS:.0f} ms"
    return f"{ns / 1e9:.1f} s" if abs(ns) < 10_000 * MS else f"{ns / 1e9:.0f} s"


def size(count: int | None) -> str:
    """`96 B`, `1.2 KB`, `18 KB`, `1.4 MB`."""
    if count is None:
        return "-"
    if count < 1000:
        return f"{count} B"
    value, units = float(count), ("B", "KB", "MB", "GB", "TB")
    for unit in units:
        if value < 999.5 or unit == units[-1]:
            return f"{value:.1f} {unit}" if unit != "B" and value < 9.95 else f"{value:.0f} {unit}"
        value /= 1000
    raise AssertionError(count)


def milliseconds(ns: int) -> str:
    """Milliseconds with as many digits as there are."""
    text = f"{ns / MS:.6f}".rstrip("0").rstrip(".")
    return text or "0"


def plain(kind: Type, value: Any) -> str:
    """One value of a field for programs: numbers without units (durations in ms), times as
    ISO-8601."""
    if value is None:
        return ""
    if kind == "duration":
        return milliseconds(value)
    if kind == "time":
        return iso_ns(value)
    if kind == "bool":
        return "true" if value else "false"
    if kind == "api":
        from kafkascope.dissectors.registry import APIS

        return APIS[value].name if value in APIS else str(value)
    if kind == "error":
        from kafkascope.dissectors.reference.codes import error_name

        return error_name(value)
    if type(value) is bytes:
        return value.hex()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        from kafkascope.dissectors.codec.jsonform import dumps

        return dumps(value).decode("utf-8", "replace")
    return str(value)


def joined(kind: Type, values: Iterable[Any], separator: str = ",") -> str:
    return separator.join(plain(kind, value) for value in values)


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
