"""Paths of the generic fields `request.<path>` and `response.<path>`: which paths exist, and the
values of a body at a path."""

from __future__ import annotations

from functools import cache
from typing import Literal

from kafkascope.dissectors import schema
from kafkascope.schemas.paths import Path, values

__all__ = ["Path", "Side", "known", "leaves", "named", "of_message", "split", "values"]

Side = Literal["request", "response"]


def split(text: str) -> Path:
    """Split the text of a path: `topics[0].name` -> ("topics", 0, "name")."""
    steps: list[str | int] = []
    for part in text.split("."):
        name, *indexes = part.split("[")
        steps.append(name)
        steps.extend(int(index.rstrip("]")) for index in indexes)
    return tuple(steps)


def of_message(side: Side, api: str) -> dict[str, set[str]] | None:
    """Return the paths of one API's message; None when there is no such API."""
    from kafkascope.dissectors.errors import UnknownApi
    from kafkascope.dissectors.registry import api_named, message

    try:
        name = api_named(api).name
    except UnknownApi:
        return None
    found: dict[str, set[str]] = {}
    _collect(message(f"{name}{side.capitalize()}").fields, "", found)
    return found


def _collect(fields: tuple[schema.Field, ...], prefix: str, found: dict[str, set[str]]) -> None:
    for field in fields:
        path = prefix + field.name
        kind = "Struct" if field.children else (field.element or type(field)).__name__
        found.setdefault(path, set()).add(kind)
        _collect(field.children, path + ".", found)


@cache
def known(side: str) -> dict[str, frozenset[str]]:
    """Return the names of types by path, over all messages. Loads every message: a tenth of a
    second."""
    from kafkascope.dissectors.registry import APIS, message

    found: dict[str, set[str]] = {}

    for api in APIS.values():
        _collect(message(f"{api.name}{side.capitalize()}").fields, "", found)
    return {path: frozenset(kinds) for path, kinds in found.items()}


@cache
def leaves() -> dict[str, frozenset[str]]:
    """Return the names of types by field name, over all fields of all messages."""
    found: dict[str, set[str]] = {}
    for side in ("request", "response"):
        for path, kinds in known(side).items():
            found.setdefault(path.rpartition(".")[2], set()).update(kinds)
    return {name: frozenset(kinds) for name, kinds in found.items()}


def named(name: str) -> frozenset[str] | None:
    """Return the types of the fields of a name; None when no message has one."""
    return leaves().get(name)
