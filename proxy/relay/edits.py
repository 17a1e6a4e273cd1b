"""Frames as people edit them, and frames with the edited body: header kept, sizes corrected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkascope.dissectors.codec.jsonform import body_from_json, dumps, loads
from kafkascope.dissectors.embedded.masking import masked
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.registry import write_layout
from kafkascope.proxy.relay.edit_records import change_records, spelled, unspelled

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.dissectors.registry import Decoded
    from kafkascope.proxy.rules.intercepted import InterceptedFrame


def shown(decoded: Decoded, payloads: Payloads | None = None, topic: str = "") -> dict[str, Any]:
    """The body as JSON, secrets hidden, records spelled out; keys and values by their schemas, as
    far as these are known. `topic`: of the records, where it is a single one."""
    layout, body = decoded.layout, decoded.body
    hidden = loads(dumps(masked(layout, body)))
    out: dict[str, Any] = change_records(
        layout.body, hidden, body, lambda _, data: spelled(data, payloads, topic)
    )
    return out


def edited(
    intercepted: InterceptedFrame,
    body: dict[str, Any],
    payloads: Payloads | None = None,
    topic: str = "",
) -> bytes:
    """The payload of a frame with that body (JSON as `shown` gave it); `DissectError` when it does
    not fit."""
    decoded = intercepted.decoded
    if decoded is None or intercepted.payload is None:
        raise DissectError("the frame cannot be decoded, so it cannot be edited")
    layout = decoded.layout
    plain = change_records(
        layout.body,
        body,
        decoded.body,
        lambda value, original: unspelled(value, original, payloads, topic),
    )
    new = _restored(body_from_json(layout, plain), masked(layout, decoded.body), decoded.body)
    return (
        intercepted.payload[: decoded.body_at]
        + write_layout(layout, new)
        + intercepted.payload[decoded.end :]
    )


def _restored(new: Any, shown: Any, real: Any) -> Any:
    """Whoever edits saw asterisks in place of secrets: what they did not change stays."""
    if new == shown:
        return real
    if isinstance(new, dict) and isinstance(shown, dict):
        return {
            name: _restored(value, shown[name], real[name]) if name in shown else value
            for name, value in new.items()
        }
    if isinstance(new, list) and isinstance(shown, list):
        if len(new) == len(shown):
            return [_restored(*each) for each in zip(new, shown, real, strict=True)]
        # Some were taken away or added: those that are left are known by how they look.
        known: dict[bytes, Any] = {}
        for looks, is_ in zip(shown, real, strict=True):
            known.setdefault(dumps(looks), is_)
        return [known.get(dumps(each), each) for each in new]
    return new
