"""History of a message: when each version appeared and what it changed, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.grammar import word
from kafkascope.dissectors.layout import ArrayWire, Layout, Slot, StructWire, Wire, resolve
from kafkascope.dissectors.reference.releases import NEVER, Span, facts_of, late_tags, span
from kafkascope.dissectors.schema import Message

Kind = Literal["added", "removed", "changed", "flexible"]

FLEXIBLE: Final = "flexible: strings and arrays are compact, structs end with tagged fields"

_SIGNS: Final = {"added": "+", "removed": "-", "changed": "~", "flexible": "~"}


class Change(NamedTuple):
    """One difference between two layouts."""

    kind: Kind
    path: str
    """`topics[].partitions[].leader_epoch`; empty for the message itself."""
    detail: str
    """The field's type, or what is different about it."""

    def __str__(self) -> str:
        return " ".join(each for each in (_SIGNS[self.kind], self.path, self.detail) if each)


def changes(message: Message, version: int) -> list[Change]:
    """Return how a version differs from the one before it; all fields for the first one."""
    new = resolve(message, version)
    if version == message.versions.low:
        return [Change("added", path, _type(slot)) for path, slot in _fields(new).items()]
    return differences(resolve(message, version - 1), new)


def differences(old: Layout, new: Layout) -> list[Change]:
    """Return how the second layout differs from the first: what is gone, then the rest in wire
    order."""
    before, after = _fields(old), _fields(new)
    found = []
    if new.flexible and not old.flexible:
        found.append(Change("flexible", "", FLEXIBLE))
    elif old.flexible and not new.flexible:
        found.append(Change("flexible", "", "not flexible"))
    found += [
        Change("removed", path, "")
        for path in before
        if path not in after and (_parent(path) in after or not _parent(path))
    ]
    for path, slot in after.items():
        if path not in before:
            found.append(Change("added", path, _type(slot)))
        elif detail := _difference(before[path], slot):
            found.append(Change("changed", path, detail))
    kept = [path for path in before if path in after]
    if kept != [path for path in after if path in before]:
        found.append(Change("changed", "", "fields in another order"))
    return found


def _parent(path: str) -> str:
    return path.rpartition(".")[0].removesuffix("[]")


def _fields(layout: Layout) -> dict[str, Slot]:
    found: dict[str, Slot] = {}

    def walk(wire: StructWire, prefix: str) -> None:
        for slot in (*wire.slots, *wire.tags):
            path = prefix + slot.name
            found[path] = slot
            inner, mark = slot.wire, "."
            if isinstance(inner, ArrayWire):
                inner, mark = inner.element, "[]."
            if isinstance(inner, StructWire):
                walk(inner, path + mark)

    walk(layout.body, "")
    return found


def _type(slot: Slot) -> str:
    text = word(slot.wire)
    return text if slot.tag is None else f"{text}, tag {slot.tag}"


def _difference(old: Slot, new: Slot) -> str:
    words = []
    if _plain(old.wire) != _plain(new.wire):
        words.append(f"{word(old.wire)} became {word(new.wire)}")
    if _nullable(old.wire) != _nullable(new.wire):
        words.append("may be null" if _nullable(new.wire) else "may no longer be null")
    if old.tag != new.tag:
        words.append(f"tag {new.tag}" if new.tag is not None else "no longer tagged")
    return ", ".join(words)


def _nullable(wire: Wire) -> bool:
    return bool(getattr(wire, "nullable", False))


def _plain(wire: Wire) -> str:
    """Return the type without nullability and compactness, which the whole message has."""
    return word(wire).replace("COMPACT_", "").replace("NULLABLE_", "")


# --- as text


def history(name: str) -> str:
    """All versions of an API (Fetch) or message (OffsetCommitValue): when, and what changed."""
    messages = _sides(name)
    first = next(iter(messages.values()))
    if first.kind == "zookeeper":
        return f"{name}: of ZooKeeper 3.3 to 3.9; versions here are ours\n"
    facts = facts_of(name)
    head = name
    if first.kind in ("request", "response"):
        head += f", api key {first.key}"
    head += f": versions {first.versions}"
    if facts.listeners:
        head += f", on listeners of kind {facts.listeners.replace(' ', ', ')}"
    if facts.former:
        head += f"; once called {facts.former.replace(' ', ', ')}"
    lines = [head, ""]
    width = len(str(first.versions.high))
    for version in range(first.versions.low, first.versions.high + 1):
        lines.append(f"{version:>{width}}  {when(span(name, version))}")
        lines += (f"{'':{width}}  {line}" for line in _what(messages, version))
    return "\n".join(lines) + "\n"


def when(found: Span) -> str:
    """Return the releases of a version: `Kafka 3.5.0, finished in 3.7.0, gone in 4.0.0`."""
    text = f"Kafka {found.since}"
    if found.stable == NEVER:
        text += ", never finished"
    elif found.stable != found.since:
        text += f", finished in {found.stable}"
    text += "".join(f", not in {dropped} but again in {back}" for dropped, back in found.gaps)
    return text + (f", gone in {found.removed}" if found.removed else "")


def _sides(name: str) -> dict[str, Message]:
    """Return the messages of an API, or the one message, by their titles."""
    if name in registry.message_names():
        return {"": registry.message(name)}
    api = registry.api_named(name)
    sides = ("Request", "Response")
    return {f"{side.lower():<8}  ": registry.message(f"{api.name}{side}") for side in sides}


def _what(messages: dict[str, Message], version: int) -> Iterator[str]:
    found = False
    for side, message in messages.items():
        late = late_tags(message.name)
        for change in changes(message, version):
            release = late.get(change.path) if change.kind == "added" else None
            yield f"{side}{change}" + (f" (since Kafka {release})" if release else "")
            found = True
        for variant in message.variants:
            if version in variant.versions:
                found = True
                yield f"{side}in Kafka {variant.releases} another layout:"
                other = differences(resolve(message, version), resolve(variant, version))
                yield from (f"{side}  {change}" for change in other)
    if not found:
        first = next(iter(messages.values())).versions.low
        yield "no fields" if version == first else f"the bytes are those of {version - 1}"
