"""Paths into decoded values: `customer.id`, `items[0].sku`, `"user-id".name`. Stateless."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

import orjson

from kafkascope.schemas.limits import LIMITS

Path: TypeAlias = tuple[str | int, ...]
"""Names, and indexes of array elements."""

_STEP: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^."\[\]\s]+)')
_INDEX: Final = re.compile(r"\[(\d{1,9})\]")
_ESCAPED: Final = re.compile(r"\\(.)")


def dumps(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        # A string of JSON text may have halves of surrogate pairs: they are escaped, as there.
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def split(text: str) -> Path:
    """Split the text of a path; `ValueError` where it is none."""
    steps: list[str | int] = []
    at = 0
    while True:
        step = _STEP.match(text, at)
        if step is None:
            raise ValueError(f'"{text}" is not a path of names separated by dots')
        quoted, bare = step.groups()
        steps.append(bare if quoted is None else _ESCAPED.sub(r"\1", quoted))
        at = step.end()
        while (index := _INDEX.match(text, at)) is not None:
            steps.append(int(index[1]))
            at = index.end()
        if at == len(text):
            return tuple(steps)
        if text[at] != ".":
            raise ValueError(f'"{text}" is not a path of names separated by dots')
        at += 1


def below(
    roots: Iterable[Any], fields: Callable[[Any], Iterable[tuple[str, Any]]]
) -> Iterator[Path]:
    """Yield the paths of fields below some types, the shortest first. `fields`: gives the names of
    a type with the types below them."""
    seen: set[Path] = set()
    left = LIMITS.path_names
    waiting: deque[tuple[Path, Any]] = deque(((), root) for root in roots)
    while waiting:
        front, node = waiting.popleft()
        for name, inner in fields(node):
            left -= 1
            if len(seen) >= LIMITS.paths or left < 0:
                return
            path = (*front, name)
            if path not in seen:
                seen.add(path)
                yield path
            if len(path) < LIMITS.path_steps:
                waiting.append((path, inner))


def values(value: Any, path: Path, at: int = 0) -> Iterator[Any]:
    """Yield the values at a path, in arrays those of each element; nothing for a missing field or
    null."""
    if isinstance(value, list):
        if at < len(path) and isinstance(path[at], int):
            index = path[at]
            if isinstance(index, int) and index < len(value):
                yield from values(value[index], path, at + 1)
            return
        for element in value:
            yield from values(element, path, at)
    elif at == len(path):
        if value is not None:
            yield value
    elif isinstance(value, dict):
        step = path[at]
        if isinstance(step, str) and step in value:
            yield from values(value[step], path, at + 1)


def field_text(value: Any, path: Path) -> str:
    """Return the cell of a path: several values with semicolons between them."""
    return ";".join(map(cell, values(value, path)))


def field_at(value: Any, path: Path) -> Any:
    """Return the value at a path: an array of values where the path goes through an array, null
    where there is none."""
    found = list(values(value, path))
    if _is_many(value, path):
        return found
    return found[0] if found else None


def _is_many(value: Any, path: Path) -> bool:
    for step in path:
        if isinstance(value, list) and isinstance(step, int):
            value = value[step] if step < len(value) else None
        elif isinstance(value, dict):
            value = value.get(step)
        else:
            break
    return isinstance(value, list)


def cell(value: Any) -> str:
    """Return a decoded value as text for one cell."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return f"base64:{value['base64']}"
    return dumps(value).decode()
