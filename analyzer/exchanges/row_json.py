"""Writes rows as exchange/1 without making an object of each: generated code, from the columns.

Most columns of a row say the same as those of many rows before it. Their text is kept, by their
values, in runs of such columns; a column declared `own` is written for each row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import groupby
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from kafkascope.analyzer.exchanges.column import INTS, TEXT, TIME, columns_of
from kafkascope.analyzer.exchanges.rows import JSON_NAMES, Row, to_json
from kafkascope.dissectors.codec.jsonform import dumps, plain
from kafkascope.dissectors.codec.source import compile_function

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.column import Named

Texts: TypeAlias = dict[tuple[Any, ...], str]

MOST_TEXTS: Final = 1024
"""Texts that are kept of each run of columns: far more than there are clients, or topics that a
client asks for in turn."""
LONGEST_TEXT: Final = 2048
"""Characters of one that is kept: those of a thousand partitions are written anew."""


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
    """Return the function that writes a row."""
    names: dict[str, Any] = {**JSON_NAMES, "written": _written, "kept": _kept}
    names["text_of"] = encode_basestring
    lines: list[str] = []
    parts = ['"schema":"exchange/1"']
    for own, run in groupby(columns_of(Row), lambda each: each.column.own):
        columns = [each for each in run if each.json]
        if own:
            parts += [part for each in columns for part in _own(each)]
        elif columns:
            texts = f"texts{len(lines)}"
            names[texts] = {}
            key = "".join(f"row.{each.name}, " for each in columns)
            told = {name: text for each in columns for name, text in each.json.items()}
            value = ", ".join(f"{name!r}: {text}" for name, text in told.items())
            lines.append(
                f"    if (t{texts} := {texts}.get(key := ({key}))) is None:\n"
                f"        t{texts} = kept({texts}, key, {{{value}}})\n"
            )
            parts.append(f"{{t{texts}}}")
    line = "f'{{" + ",".join(parts) + "}}'.encode()"
    source = f"def json_of_row(row):\n{''.join(lines)}    return {line}\n"
    made: Callable[[Row], bytes] = compile_function(
        "json_of_row", source, names, "exchange/1, written"
    )
    return made


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
    """Return the JSON of a value."""
    if value is None:
        return "null"
    return orjson.dumps(value, default=plain).decode()


def _kept(texts: Texts, key: tuple[Any, ...], value: dict[str, Any]) -> str:
    """Return the members of a run of columns, and keep them for the next row that has the same."""
    text = orjson.dumps(value, default=plain)[1:-1].decode()
    if len(text) <= LONGEST_TEXT:
        if len(texts) >= MOST_TEXTS:
            texts.clear()
        texts[key] = text
    return text
