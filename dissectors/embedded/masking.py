"""Masks secrets in bodies: they become asterisks of the same length.

Secret are the values of fields that are declared `secret=True`, values of configs whose names or
contents say so (`config_secrets`: passwords, keys and tokens go to brokers as plain text in
AlterConfigs, too), and those of which the broker says that they are sensitive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from kafkascope.dissectors.codec.reader import Body
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
    """Whether the field's value must not be shown; `around` is the struct that it stands in."""
    if field.subject == NODE_DATA:
        return holds_credentials(around.get(field.name), around.get("path"))
    if field.subject == NODE_IDENTITY:
        return around.get("scheme") == "digest"
    if field.subject != CONFIG_VALUE or field.secret:
        return field.secret
    name = around.get("name", around.get("key"))
    return _is_told(around) or is_sensitive(name) or holds_secret(around.get(field.name))


def _is_told(around: Mapping[str, Any]) -> bool:
    """Whether the broker says that a config is sensitive, whatever its name."""
    return around.get("is_sensitive") is True


@cache
def has_secrets(layout: Layout) -> bool:
    """Whether any field of the layout may be secret."""
    return _secret_in(layout.body)


def _secret_in(wire: Wire) -> bool:
    if isinstance(wire, ArrayWire):
        return _secret_in(wire.element)
    if isinstance(wire, StructWire):
        return any(
            slot.field.secret or slot.field.subject in SUBJECTS or _secret_in(slot.wire)
            for slot in (*wire.slots, *wire.tags)
        )
    return False


def masked(layout: Layout, body: Body) -> Body:
    """Return the body without its secrets; the very same body when the layout has none."""
    return _masked(layout.body, body) if has_secrets(layout) else body


def _masked(wire: Wire, value: Any, told: bool = False) -> Any:
    """Mask a struct; `told`: it is part of a config that is sensitive, such as one of its
    synonyms."""
    if value is None:
        return None
    if isinstance(wire, ArrayWire):
        return [_masked(wire.element, each, told) for each in value]
    if not isinstance(wire, StructWire):
        return value
    told = told or _is_told(value)
    out = dict(value)
    for slot in (*wire.slots, *wire.tags):
        old = value[slot.name]
        if isinstance(old, str | bytes) and _hides(slot.field, value, told):
            out[slot.name] = asterisks(old)
        else:
            out[slot.name] = _masked(slot.wire, old, told)
    return out


def _hides(field: Field, around: Mapping[str, Any], told: bool) -> bool:
    return is_secret(field, around) or (told and field.subject == CONFIG_VALUE)


def asterisks(value: str | bytes) -> str | bytes:
    """Return as many asterisks as the value has bytes on the wire, so that they can take its
    place."""
    stars = b"*" * len(_on_wire(value))
    return stars if isinstance(value, bytes) else stars.decode("ascii")


def _on_wire(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")


def secrets_of(layout: Layout, body: Body) -> Iterator[bytes]:
    """Yield the secret values of a body, as the bytes that stand on the wire."""
    if has_secrets(layout):
        yield from _secrets(layout.body, body)


def _secrets(wire: Wire, value: Any, told: bool = False) -> Iterator[bytes]:
    if value is None:
        return
    if isinstance(wire, ArrayWire):
        for each in value:
            yield from _secrets(wire.element, each, told)
    elif isinstance(wire, StructWire):
        told = told or _is_told(value)
        for slot in (*wire.slots, *wire.tags):
            inner = value[slot.name]
            if isinstance(inner, str | bytes) and inner and _hides(slot.field, value, told):
                yield _on_wire(inner)
            else:
                yield from _secrets(slot.wire, inner, told)
