"""Filters from what is under the cursor: conditions of a row or a field, ways to join them with the
filter in use, and what to follow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import filterfalse
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.session.rows import row_of_columns
from kafkascope.analyzer.session.session import Session
from kafkascope.analyzer.topics import nameless
from kafkascope.tui.document.tree import Item
from kafkascope.tui.limits import LIMITS

WAYS: Final = (
    ("is", "is: {0}"),
    ("not", "is not: not {0}"),
    ("and", "... and {0}"),
    ("or", "... or {0}"),
    ("and not", "... and not {0}"),
    ("or not", "... or not {0}"),
    ("prepare", "into the box: {0}"),
)


class Follow(NamedTuple):
    """Something that exchanges belong to, and the filter for it."""

    title: str
    filter: str


def joined(way: str, condition: str, present: str) -> str:
    """Return a condition joined with the filter in use, in one of `WAYS`."""
    if way in ("is", "prepare") or (way in ("and", "or") and not present):
        return condition
    if way == "not" or not present:
        return f"not ({condition})" if " and " in condition else f"not {condition}"
    word, _, rest = way.partition(" ")
    left = f"({present})" if " or " in f" {present} " or " and " in f" {present} " else present
    if word == "and" and " or " not in f" {present} ":
        left = present
    right = f"({condition})" if " and " in condition else condition
    return f"{left} {word} {rest + ' ' if rest else ''}{right}"


def of_item(item: Item) -> str:
    """Return the condition that a field has this value; empty if the line is no field."""
    raw = item.raw
    if not item.path or raw is None:
        return ""
    if isinstance(raw, str):
        return f"{item.path} == {quoted(raw)}"
    if isinstance(raw, bytes):
        return f"{item.path} contains {raw[:16].hex(':')}" if raw else ""
    return f"{item.path} == {str(raw).lower() if isinstance(raw, bool) else raw}"


def of_row(session: Session, index: int) -> list[str]:
    """Return conditions that a row fulfils, the usual ones first."""
    row = row_of_columns(session, index)
    api, version = row.api, row.api_version
    client = f"client == {quoted(row.client_id)}" if row.client_id else ""
    conditions = (
        f"api == {api}" if api else "",
        f"api == {api} and {client}" if api and client else "",
        client,
        *(f"error == {error.name}" for error in _few(row.errors)),
        f"state == {row.state}" if row.state != "answered" else "",
        f"conn == {row.connection}",
        *(f"topic == {quoted(topic)}" for topic in _few(row.topics) if not nameless(topic)),
        *(f"partition == {partition}" for partition in _few(row.partitions)),
        *(f"group == {quoted(group)}" for group in _few(row.groups)),
        *(f"producer.id == {number}" for number in _few(row.producer_ids) if number >= 0),
        f"api == {api} and version == {version}" if api and version is not None else "",
        f"software == {quoted(row.software)}" if row.software else "",
        f"user == {quoted(row.user)}" if row.user else "",
        f"client.ip == {row.client_address.rpartition(':')[0].strip('[]')}",
        f"broker == {quoted(row.broker_address)}",
    )
    return list(dict.fromkeys(filter(None, conditions)))


def follows(session: Session, index: int) -> Iterator[Follow]:
    """Yield what an exchange belongs to."""
    row = row_of_columns(session, index)
    ends = f"{row.client_address} to {row.broker_address}"
    yield Follow(f"connection {row.connection}   {ends}", f"conn == {row.connection}")
    if row.client_id:
        yield Follow(f"client {row.client_id}", f"client == {quoted(row.client_id)}")
    for group in _few(row.groups):
        yield Follow(f"group {group}", f"group == {quoted(group)}")
    for topic in filterfalse(nameless, _few(row.topics)):
        yield Follow(f"topic {topic}", f"topic == {quoted(topic)}")
        for partition in _few(row.partitions):
            text = f"topic == {quoted(topic)} and partition == {partition}"
            yield Follow(f"topic-partition {topic}-{partition}", text)
    for number in _few(row.producer_ids):
        if number >= 0:
            yield Follow(f"producer id {number}", f"producer.id == {number}")
    for txn in _few(row.transactional_ids):
        yield Follow(f"transactional id {txn}", f"txn == {quoted(txn)}")


def unnamed_ids(session: Session, index: int | None) -> list[bytes]:
    """Return topic ids without a name, as far as bodies were read: those of a row first."""
    here = () if index is None else session.value("topic_ids", index)
    every = (each for ids in session.tables["topic_ids"].values for each in ids)
    names = session.context.names
    found = dict.fromkeys(each for each in (*here, *every) if any(each) and not names.get(each))
    return list(found)[: LIMITS.unnamed_ids]


def _few(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))[: LIMITS.followed_values]


def ports(text: str) -> frozenset[int]:
    """Parse ports and ranges of them; `ValueError` with a sentence."""
    found: set[int] = set()
    for part in text.replace(",", " ").split():
        low, _, high = part.partition("-")
        if not low.isdecimal() or not (high or low).isdecimal():
            raise ValueError(f'"{part}" is no port and no range such as 9094-9096')
        first, last = int(low), int(high or low)
        if not 0 < first <= last < 65_536:
            raise ValueError("ports are 1 to 65535")
        found.update(range(first, last + 1))
    if not found:
        raise ValueError("no port was given")
    return frozenset(found)
