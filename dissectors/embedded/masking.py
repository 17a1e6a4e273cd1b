"""Masks secrets in bodies: they become asterisks of the same length.

Secret are the values of fields that are declared `secret=True`, values of configs whose names or
contents say so (`config_secrets`: passwords, keys and tokens go to brokers as plain text in
AlterConfigs, too), and those of which the broker says that they are sensitive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.codec.walk import leaves, visits
from kafkascope.dissectors.layout import ArrayWire, Layout, StructWire, Wire
from kafkascope.dissectors.reference.config_secrets import holds_secret, is_sensitive
from kafkascope.dissectors.schema import Field
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


def is_secret(field: Field, around: Mapping[str, Any]) -> bool:
    """Return whether the field's value must not be shown; `around` is the struct that contains
    it."""
    if field.subject == NODE_DATA:
        return holds_credentials(around.get(field.name), around.get("path"))
    if field.subject == NODE_IDENTITY:
        return around.get("scheme") == "digest"
    if field.subject != CONFIG_VALUE or field.secret:
        return field.secret
    name = around.get("name", around.get("key"))
    return _is_sensitive(around) or is_sensitive(name) or holds_secret(around.get(field.name))


def _is_sensitive(around: Mapping[str, Any]) -> bool:
    """Whether the broker says that a config is sensitive, whatever its name."""
    return around.get("is_sensitive") is True


def has_secrets(layout: Layout) -> bool:
    return visits(layout, _may_hold_secrets) is not None


def _may_hold_secrets(wire: StructWire) -> bool:
    slots = (*wire.slots, *wire.tags)
    return any(slot.field.secret or slot.field.subject in SUBJECTS for slot in slots)


def masked(layout: Layout, body: Body) -> Body:
    """Return the body without its secrets; the very same body when the layout has none."""
    return _masked(layout.body, body) if has_secrets(layout) else body


def secrets_of(layout: Layout, body: Body) -> list[bytes]:
    """Return the secret values of a body, as the bytes that stand on the wire."""
    both = zip(leaves(layout, body), leaves(layout, masked(layout, body)), strict=True)
    return [_on_wire(one.value) for one, other in both if one.value != other.value]


def _masked(wire: Wire, value: Any, sensitive: bool = False) -> Any:
    """Mask a struct; `sensitive`: it is part of a config that is, such as one of its synonyms."""
    if value is None:
        return None
    if isinstance(wire, ArrayWire):
        return [_masked(wire.element, each, sensitive) for each in value]
    if not isinstance(wire, StructWire):
        return value
    sensitive = sensitive or _is_sensitive(value)
    out = dict(value)
    for slot in (*wire.slots, *wire.tags):
        old = value[slot.name]
        hides = sensitive and slot.field.subject == CONFIG_VALUE
        if isinstance(old, str | bytes) and (hides or is_secret(slot.field, value)):
            out[slot.name] = asterisks(old)
        else:
            out[slot.name] = _masked(slot.wire, old, sensitive)
    return out


def asterisks(value: str | bytes) -> str | bytes:
    """Return as many asterisks as the value has bytes on the wire, so that they can take its
    place."""
    stars = b"*" * len(_on_wire(value))
    return stars if isinstance(value, bytes) else stars.decode("ascii")


def _on_wire(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
