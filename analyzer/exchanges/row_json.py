"""Writes rows as exchange/1 without making an object of each: generated code, from the columns.

Most columns of a row say the same as those of many rows before it. Their text is kept, by their
values, in runs of such columns; a column declared `own` is written for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import groupby
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from kafkascope.analyzer.exchanges.column import INTS, TEXT, TIME, columns_of
from kafkascope.analyzer.exchanges.limits import LIMITS
from kafkascope.analyzer.exchanges.rows import JSON_NAMES, Row, to_json
from kafkascope.dissectors.codec.jsonform import dumps, plain
from kafkascope.kernel import lines
from kafkascope.kernel.lines import JsonMember
from kafkascope.kernel.pairs import OWN
from kafkascope.source import compile_function

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.column import Named

Texts: TypeAlias = dict[tuple[Any, ...], str]


_SHORT: Final = "0.001 <= v < 1e9"
"""Tells floats without an exponent, which encoders write differently."""

NOT_UTF8: Final = (TypeError, UnicodeEncodeError)
"""Raised for text that is not UTF-8."""


def json_of_row(row: Row) -> bytes:
    """Return the bytes that `dumps(to_json(row))` returns."""
    try:
        return _writer()(row)
    except NOT_UTF8:
        return dumps(to_json(row))  # escaped, as is all of the row


def utf8_of_row(row: Row) -> bytes:
    """Return the same; raise one of `NOT_UTF8` when text of the row is not UTF-8."""
    return _writer()(row)


@cache
def _writer() -> Callable[[Row], bytes]:
    names: dict[str, Any] = {"kept": _kept}
    lines: list[str] = []
    parts: list[str] = []
    for number, (own, columns) in enumerate(_runs()):
        if own:
            parts += [part for each in columns for part in _own(each)]
            continue
        texts = f"texts{number}"
        names[texts] = {}
        key = "".join(f"row.{each.name}, " for each in columns)
        lines.append(
            f"    if (t{texts} := {texts}.get(key := ({key}))) is None:\n"
            f"        t{texts} = kept({texts}, key, {_members(columns)})\n"
        )
        parts.append(f"{{t{texts}}}")
    source = f"def json_of_row(row):\n{''.join(lines)}    return {_line(parts)}\n"
    made: Callable[[Row], bytes] = _compiled("json_of_row", source, names)
    return made


@cache
def runs_of() -> tuple[Callable[[Row], bytes], ...]:
    """Return what writes the columns of a row between those that each has of its own."""
    out: list[Callable[[Row], bytes]] = []
    for own, columns in _runs():
        if not own:
            source = f"def run_of(row):\n    return written_run({_members(columns)})\n"
            out.append(_compiled("run_of", source, {"written_run": _written_run}))
    return tuple(out)


_FORMS: Final = {
    "": lines.NUMBER,
    "None if {0} is None else {0} / MS": lines.MILLIS,
    "{0} / MS if {0} % MS else {0} // MS": lines.SHORT_MILLIS,
    "iso_ns({0})": lines.TIME,
}
"""How the kernel writes the expressions of columns; `{0}` is the value."""


@cache
def members() -> tuple[JsonMember, ...]:
    """Return the members of exchange/1 as the kernel writes them."""
    out: list[JsonMember] = []
    before = b'{"schema":"exchange/1",'
    runs = 0
    for own, columns in _runs():
        if not own:
            out.append(JsonMember(before, lines.RUN, runs))
            runs, before = runs + 1, b","
            continue
        for each in columns:
            for name, text in each.json.items():
                value = f"row.{each.name}"
                form = _FORMS.get("" if text == value else text.replace(value, "{0}"))
                begin, end = (b"[", b"]") if each.column.kind is INTS else (b"", b"")
                if each.column.kind in (TEXT, TIME):
                    begin = end = b'"'
                if each.column.kind is TEXT:
                    form = lines.ID
                elif each.column.kind is INTS:
                    form = lines.FRAMES
                assert form is not None, text
                field = OWN.index(each.name) if form != lines.ID else 0
                label = b'%b"%b":%b' % (before, name.encode(), begin)
                out.append(JsonMember(label, form, field))
                before = end + b","
    return tuple(out)


def _runs() -> Iterator[tuple[bool, list[Named]]]:
    """Yield the columns of exchange/1 in order: those that each row has of its own, and those
    between."""
    for own, run in groupby(columns_of(Row), lambda each: each.column.own):
        columns = list(run)
        if any(each.json for each in columns):
            # Columns without a name of their own may be in the text of another one.
            yield own, columns


def _members(columns: list[Named]) -> str:
    """Return the expression of the object with some columns of `row`."""
    members = {name: text for each in columns for name, text in each.json.items()}
    return "{" + ", ".join(f"{name!r}: {text}" for name, text in members.items()) + "}"


def _line(parts: list[str]) -> str:
    return "f'{{" + ",".join(('"schema":"exchange/1"', *parts)) + "}}'.encode()"


def _compiled(name: str, source: str, names: dict[str, Any]) -> Any:
    names |= {**JSON_NAMES, "written": _written, "text_of": encode_basestring}
    return compile_function(name, source, names, "exchange/1, written")


def _own(each: Named) -> list[str]:
    """Return the members of a column that is written for each row, as parts of an f-string."""
    members = []
    for name, text in each.json.items():
        if each.column.kind.numbered and text == f"row.{each.name}":
            text = f'{{"null" if (v := {text}) is None else v}}'
        elif each.column.kind is TIME:
            text = f'"{{{text}}}"'
        else:
            if each.column.kind is TEXT:
                text = f"{{text_of({text})}}"
            elif each.column.kind is INTS:
                pair = 'f"[{v[0]},{v[1]}]"'  # The frames of most exchanges.
                text = f"{{{pair} if len(v := {text}) == 2 else written(v)}}"
            else:
                # What `written` gives for most numbers, without a call.
                plain = f"(t := type(v := ({text}))) is int or (t is float and {_SHORT})"
                text = f"{{v if {plain} else written(v)}}"
        members.append(f'"{name}":{text}')
    return members


def _written(value: Any) -> str:
    if value is None:
        return "null"
    return orjson.dumps(value, default=plain).decode()


def _kept(texts: Texts, key: tuple[Any, ...], value: dict[str, Any]) -> str:
    """Return the members of a run of columns, and keep them for the next row that has the same."""
    text = _written_run(value).decode()
    if len(text) <= LIMITS.cached_text_chars:
        if len(texts) >= LIMITS.cached_texts:
            texts.clear()
        texts[key] = text
    return text


def _written_run(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, default=plain)[1:-1]
