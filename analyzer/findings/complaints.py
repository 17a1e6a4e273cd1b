"""Why a key or value does not fit, without what it holds: findings stand in reports, which tell no
values of records."""

from __future__ import annotations

import base64
import binascii
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.model import PayloadError, Schema

HIDDEN: Final = "*"
"""In place of what is no name of the schema's: the key of a map, say."""
MOST_TEXT: Final = 32 << 10
"""Characters of a schema in which names are looked for; of larger ones all are hidden."""
_PART: Final = re.compile(r"\[\d{1,9}\]|[^.\[\]]+")
_WORD: Final = re.compile(r"[^\W\d][\w-]*")
_QUOTED: Final = re.compile(r"""['"].*['"]""", re.S)
_NAMED: Final = re.compile(
    r"(has no field|has no type|no schema has the type|no one message) .*", re.S
)
"""Texts with something of the payload at their end."""
_TYPE: Final = " is not of type "
_BY_NAME: Final = "required"
"""A keyword of JSON Schema whose message has a name of the schema, and nothing of the value."""


def complaint(error: PayloadError, schema: Schema | None) -> tuple[str, str]:
    """Return the path and the text of an error."""
    path = error.path
    if path:
        known = _words(schema.text) if schema is not None else frozenset[str]()
        path = _PART.sub(
            lambda part: part[0] if part[0][0] == "[" or part[0] in known else HIDDEN, path
        )
    if schema is not None and schema.format == "json":
        return path, _of_json(error.text)
    return path, _NAMED.sub(rf"\1 {HIDDEN}", _QUOTED.sub(HIDDEN, error.text))


@lru_cache(maxsize=64)
def _words(text: str) -> frozenset[str]:
    """Return the words of a schema, among them all names of fields."""
    if len(text) > MOST_TEXT:
        return frozenset()
    words = set(_WORD.findall(text))
    try:
        words |= {*_WORD.findall(base64.b64decode(text, validate=True).decode("latin-1"))}
    except (binascii.Error, ValueError):
        pass  # no descriptor of Protobuf, but source text or JSON
    return frozenset(words)


def _of_json(text: str) -> str:
    """Return the keyword that a value breaks: the library's message behind it repeats the value."""
    keyword, colon, message = text.partition(": ")
    if not colon or " " in keyword or keyword == _BY_NAME:
        return text
    if keyword == "type" and _TYPE in message:
        return f"type: not {message.rpartition(_TYPE)[2]}"
    return f"violates {keyword}"
