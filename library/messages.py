"""Messages as bytes and as dicts, and their construct Structs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from kafkascope.errors import Error

if TYPE_CHECKING:
    import construct

Kind = Literal["request", "response"]


class SurplusBytes(Error):
    """Bytes are left after the end of a message; `body` is what was read, `end` its size."""

    def __init__(self, name: str, version: int, body: dict[str, Any], end: int, size: int) -> None:
        super().__init__(f"{name} {version}: {size - end} bytes are left after its {end}")
        self.body = body
        self.end = end


def decode(data: bytes, name: str, version: int, kind: Kind | None = None) -> dict[str, Any]:
    """Return the body of a message: `decode(data, "Fetch", 12, "response")`, or by the message's
    whole name, `decode(data, "FetchResponse", 12)`.

    `data` is the body alone, without size and header. Values are Python's: bytes for bytes and
    records, `uuid` fields as 16 bytes. Raises `DissectError`, with path and offset, where the bytes
    do not fit, and `SurplusBytes` where some are left.
    """
    from kafkascope.dissectors import registry

    message = _message(name, kind)
    body, end, _ = registry.read_best(registry.message(message), version, bytes(data))
    if end < len(data):
        raise SurplusBytes(message, version, body, end, len(data))
    return body


def encode(
    name: str, version: int, kind: Kind | Mapping[str, Any] | None = None, body: Any = None
) -> bytes:
    """Return the bytes of a body: `encode("Fetch", 12, "request", {"max_wait_ms": 500})`, or by the
    message's whole name, `encode("FetchRequest", 12, {...})`.

    The body is one that `decode` returned, or has the JSON form of docs/json.md; fields that are
    missing get their defaults. Raises `DissectError` with the path of a value that
    does not fit, or of a field that the version has not.
    """
    from kafkascope.dissectors.codec.jsonform import body_from_json
    from kafkascope.dissectors.registry import layout_of, write_layout

    if not isinstance(kind, str | None):
        kind, body = None, kind
    layout = layout_of(_message(name, kind), version)
    return write_layout(layout, body_from_json(layout, {} if body is None else body))


def struct(name: str, version: int) -> construct.Construct[Any, Any]:
    """Return the construct Struct of a message, which parses and builds its body:
    `struct("FetchRequest", 12).parse(data)`, alone or inside Structs of your own. It is the
    reference, some twenty times slower than `decode`."""
    from kafkascope.dissectors.codec.structs import Standalone
    from kafkascope.dissectors.registry import layout_of

    return Standalone(layout_of(name, version))


def _message(name: str, kind: Kind | None) -> str:
    return name if kind is None else f"{name}{kind.capitalize()}"
