"""The outcome of an exchange in words: the last column of `ls`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkascope.analyzer.bodies.dissection import OTHER_LAYOUT
from kafkascope.analyzer.exchanges.limits import LIMITS

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row


def result(row: Row) -> str:
    """Return the outcome of the exchange in words: the last column of `ls`."""
    if row.state == "opaque":
        return f"~ {row.reason}"
    if row.state in ("orphan", "refused", "unreachable"):
        return f"? {row.reason}"
    if row.state == "event" and row.zookeeper is not None:
        return f"~ {row.zookeeper.event} {row.zookeeper.path}"
    if not row.undecoded:
        return _outcome(row)
    left = [
        f"({each.side}: {each.text if each.reason == OTHER_LAYOUT else each.reason}"
        f"{f', {each.bytes} bytes' if each.bytes else ''})"
        for each in row.undecoded
    ]
    return " ".join((_outcome(row), *left))


def is_unread(row: Row) -> bool:
    """Return whether there is a response that could not be decoded."""
    return any(each.side == "response" and each.reason != "surplus" for each in row.undecoded)


def _outcome(row: Row) -> str:
    if row.state in ("open", "lost"):
        return f"? no answer, {row.reason}"
    if row.state == "no-reply":
        return f"acks=0{_subject(row)}{_amount(row)}"
    if row.errors:
        return "! " + _errors(row)
    if row.undecoded and is_unread(row):
        return "? not decoded"
    if row.zookeeper is not None and row.notes and row.notes[0].side == "response":
        return f"! {row.notes[0].text}"
    text = f"ok{_subject(row)}"
    if row.api == "Produce" and row.offset is not None and len(row.partitions) == 1:
        text += f" offset {row.offset}"
    else:
        text += _amount(row)
    if waited := round(row.wait_ns / 1_000_000):
        text += f" (waited {waited} ms)"
    if row.throttle_ms:
        text += f" (throttled {row.throttle_ms} ms)"
    return f"{text} (forwarded)" if row.forwarded else text


def _subject(row: Row) -> str:
    """Return what it refers to, after a space: one partition, some topics, a group, or a node of
    ZooKeeper."""
    if row.zookeeper is not None:
        about = row.zookeeper
        name = about.path or (about.session_id if row.api == "zk.connect" else None)
        return f" {name}" if name else ""
    if row.topics:
        if len(row.topics) == 1 and len(row.partitions) == 1:
            return f" {row.topics[0]}-{row.partitions[0]}"
        return f" {_some(row.topics)}"
    return f" {_some(row.groups)}" if row.groups else ""


def _amount(row: Row) -> str:
    if row.records is None:
        return ""
    return " 1 record" if row.records == 1 else f" {row.records or 'no'} records"


def _errors(row: Row) -> str:
    """Return each error once, with what it refers to."""
    about: dict[str, list[str]] = {}
    for error in row.errors:
        places = about.setdefault(error.name, [])
        if error.topic:
            partition = "" if error.partition is None else f"-{error.partition}"
            places.append(f"{error.topic}{partition}")
        elif error.group:
            places.append(error.group)
        elif row.zookeeper is not None and (path := error.message or row.zookeeper.path):
            places.append(path)
    texts = [
        " ".join((name, *([_some(places)] if places else ()))) for name, places in about.items()
    ]
    return "; ".join(texts)


def _some(values: Sequence[str]) -> str:
    rest = len(values) - LIMITS.named_values
    return ", ".join(values[: LIMITS.named_values]) + (f" (+{rest})" if rest > 0 else "")
