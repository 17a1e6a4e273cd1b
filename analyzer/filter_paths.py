"""Paths of the generic fields `request.<path>` and `response.<path>`: which there are, and what a
body has there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, Literal, TypeAlias

from dissectors import schema

Side = Literal["request", "response"]
Path: TypeAlias = tuple[str | int, ...]
"""Names, and indexes of array elements."""

_STEP: Final = re.compile(r"\.|\[(\d{1,9})\]")


def split(text: str) -> Path:
    """`topics[0].name` -> ("topics", 0, "name")."""
    steps: list[str | int] = []
    for part in text.split("."):
        name, *indexes = part.split("[")
        steps.append(name)
        steps.extend(int(index.rstrip("]")) for index in indexes)
    return tuple(steps)


@cache
def known(side: Side) -> dict[str, frozenset[str]]:
    """Path -> names of the types that some message has there. Loads every message: a tenth of a
    second."""
    from dissectors.registry import APIS, message

    found: dict[str, set[str]] = {}

    def visit(fields: tuple[schema.Field, ...], prefix: str) -> None:
        for field in fields:
            path = prefix + field.name
            element = getattr(field, "element", None)
            kind = (element or type(field)).__name__
            found.setdefault(path, set()).add("Struct" if field.children else kind)
            visit(field.children, path + ".")

    for api in APIS.values():
        visit(message(f"{api.name}{side.capitalize()}").fields, "")
    return {path: frozenset(kinds) for path, kinds in found.items()}


def values(body: Any, path: Path, at: int = 0) -> Iterator[Any]:
    """What the body has at the path, arrays looked through; nothing where there is no such
    field."""
    if isinstance(body, list):
        if at < len(path) and isinstance(path[at], int):
            index = path[at]
            if isinstance(index, int) and index < len(body):
                yield from values(body[index], path, at + 1)
            return
        for element in body:
            yield from values(element, path, at)
    elif at == len(path):
        if body is not None:
            yield body
    elif isinstance(body, dict):
        step = path[at]
        if isinstance(step, str) and step in body:
            yield from values(body[step], path, at + 1)
