"""The visitor that redacts bodies: secrets become asterisks of the same length, and a policy says
what becomes of all else.

Secret are the values of fields that are declared `secret=True`, values of configs whose names or
contents say so (`config_secrets`: passwords, keys and tokens go to brokers as plain text in
AlterConfigs, too), and those of which the broker says that they are sensitive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.codec.walk import UNKNOWN_TAGS, leaves, visits
from kafkascope.dissectors.layout import ArrayWire, Layout, NumberWire, Slot, StructWire, Wire
from kafkascope.dissectors.reference.config_secrets import holds_secret, is_sensitive
from kafkascope.dissectors.zookeeper.nodes import holds_credentials

CONFIG_VALUE: Final = "configValue"
"""`Field.subject` of a config's value; its `name` or `key` stands beside it."""

NODE_DATA: Final = "znodeData"
"""The same of what is in a node of ZooKeeper, whose `path` may stand beside it."""
NODE_IDENTITY: Final = "znodeIdentity"
"""The same of whom an ACL of ZooKeeper is for; of the `scheme` digest it holds a password's
hash."""
SUBJECTS: Final = frozenset({CONFIG_VALUE, NODE_DATA, NODE_IDENTITY})
"""Marks of values that may be secret."""


class Policy(Protocol):
    """What becomes of values that are no secrets."""

    @property
    def keeps_unknown_tags(self) -> bool:
        """Whether tagged fields stay of which the layout knows nothing."""

    def value(
        self, message: str, slot: Slot, wire: Wire, value: Any, around: Mapping[str, Any]
    ) -> Any:
        """Return the replacement of a text or of bytes, which may be an element of an array.
        `wire`: its own; `around`: the struct that contains it."""


def has_secrets(layout: Layout) -> bool:
    return visits(layout, _may_hold_secrets) is not None


def _may_hold_secrets(wire: StructWire) -> bool:
    slots = (*wire.slots, *wire.tags)
    return any(slot.field.secret or slot.field.subject in SUBJECTS for slot in slots)


def masked(layout: Layout, body: Body) -> Body:
    """Return the body without its secrets; the very same body when the layout has none."""
    return redacted(layout, body) if has_secrets(layout) else body


def redacted(layout: Layout, body: Body, policy: Policy | None = None) -> Body:
    """Return a copy of the body without its secrets, in which the policy has replaced all other
    texts and bytes."""
    return _Visitor(layout.message.name, policy).struct(layout.body, body, False)


def secrets_of(layout: Layout, body: Body) -> list[bytes]:
    """Return the secret values of a body, as the bytes that stand on the wire."""
    both = zip(leaves(layout, body), leaves(layout, masked(layout, body)), strict=True)
    return [_on_wire(one.value) for one, other in both if one.value != other.value]


class _Visitor:
    def __init__(self, message: str, policy: Policy | None) -> None:
        self._message, self._policy = message, policy
        self._bare = policy is not None and not policy.keeps_unknown_tags

    def struct(self, wire: StructWire, value: Mapping[str, Any], sensitive: bool) -> Body:
        """`sensitive`: it is part of a config that is, such as one of its synonyms."""
        sensitive = sensitive or value.get("is_sensitive") is True
        out = dict(value)
        if self._bare:
            out.pop(UNKNOWN_TAGS, None)
        for slot in (*wire.slots, *wire.tags):
            old = value[slot.name]
            if old is not None and not isinstance(old, int):
                out[slot.name] = self._part(slot, slot.wire, old, value, sensitive)
        return out

    def _part(
        self, slot: Slot, wire: Wire, value: Any, around: Mapping[str, Any], sensitive: bool
    ) -> Any:
        if value is None:
            return None
        if isinstance(wire, StructWire):
            return self.struct(wire, value, sensitive)
        if isinstance(wire, ArrayWire):
            element = wire.element
            if isinstance(element, NumberWire):
                return value
            return [self._part(slot, element, each, around, sensitive) for each in value]
        if not isinstance(value, str | bytes):
            return value
        field = slot.field
        if field.secret or (
            field.subject in SUBJECTS and _is_secret(field.subject, value, around, sensitive)
        ):
            return asterisks(value)
        policy = self._policy
        return value if policy is None else policy.value(self._message, slot, wire, value, around)


def _is_secret(
    subject: str, value: str | bytes, around: Mapping[str, Any], sensitive: bool
) -> bool:
    if subject == NODE_DATA:
        return isinstance(value, bytes) and holds_credentials(value, around.get("path"))
    if subject == NODE_IDENTITY:
        return around.get("scheme") == "digest"
    return sensitive or is_sensitive(around.get("name", around.get("key"))) or holds_secret(value)


def asterisks(value: str | bytes) -> str | bytes:
    """Return as many asterisks as the value has bytes on the wire, so that they can take its
    place."""
    stars = b"*" * len(_on_wire(value))
    return stars if isinstance(value, bytes) else stars.decode("ascii")


def _on_wire(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
