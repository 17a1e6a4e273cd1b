"""Decoded values inside bytes fields and records as indented lines: dicts, lists, texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dissectors.embedded import Embedded
from dissectors.internal import Content, Internal, masked_content
from dissectors.values import Uuid

LIST_SHOWN: Final = 100
"""Elements of a list that are shown before the others are counted."""


def embedded_lines(found: Embedded) -> Iterator[str]:
    """What a bytes field holds."""
    note = f" ({found.note})" if found.note else ""
    yield from value_lines(found.kind + note, found.body)


def internal_lines(found: Internal) -> Iterator[str]:
    """What one of Kafka's own records says."""
    for content in (found.key, found.value):
        if content is not None:
            yield from value_lines(_title(content), masked_content(content))
    if found.error is not None:
        yield f"! {found.error}"


def _title(content: Content) -> str:
    note = f" ({content.note})" if content.note else ""
    return f"{content.message} v{content.version}{note}"


def value_lines(name: str, value: Any) -> Iterator[str]:
    """`name: value`, and the parts of a value that has parts below it."""
    if isinstance(value, dict):
        yield name
        for key, inner in value.items():
            for line in value_lines(str(key), inner):
                yield f"  {line}"
    elif isinstance(value, list | tuple) and any(isinstance(v, dict | list) for v in value):
        yield f"{name}: {len(value)}"
        for index, inner in enumerate(value[:LIST_SHOWN]):
            for line in value_lines(f"[{index}]", inner):
                yield f"  {line}"
        if len(value) > LIST_SHOWN:
            yield f"  ... {len(value) - LIST_SHOWN} more"
    else:
        yield f"{name}: {_shown(value)}"


def _shown(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + "".join(c if c.isprintable() else repr(c)[1:-1] for c in value) + '"'
        case Uuid():
            return str(value)
        case bytes():
            return f"{len(value)} bytes {value[:32].hex(' ')}" + ("..." if len(value) > 32 else "")
        case list() | tuple():
            return "[" + ", ".join(_shown(each) for each in value) + "]"
        case _:
            return str(value)
