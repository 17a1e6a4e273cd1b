"""Caps the versions in ApiVersions responses where a newer one would hide addresses from us.

A client that speaks a version which we cannot read gets addresses that lead past us. So the APIs
whose responses hold addresses are offered up to the version that we know; all others stay as the
broker offers them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kafkascope.dissectors.registry import (
    API_VERSIONS,
    APIS,
    UNSUPPORTED_VERSION,
    decode_response,
    encode_body,
    example,
    write_layout,
)
from kafkascope.proxy.relay.endpoints import CACHED, CACHED_BYTES, ENDPOINTS
from kafkascope.proxy.relay.pairing import SIZE

if TYPE_CHECKING:
    from kafkascope.proxy.relay.context import Context

ID_BYTES: Final = 4
"""Of the correlation id, first in every response's payload."""


class Versions:
    """Caps the versions that brokers offer."""

    def newer(self, version: int) -> bool:
        """Whether that version of ApiVersions is one that we do not know."""
        return version not in APIS[API_VERSIONS].versions

    def refusal(self, version: int, correlation_id: int) -> bytes | None:
        """Our response to an ApiVersions request of a version that we do not know: ask again, lower
        (KIP-511). Else the broker's response could not be capped. None: the version is known."""
        if not self.newer(version):
            return None
        known = APIS[API_VERSIONS].versions
        body = example("ApiVersionsResponse", 0)
        body["error_code"] = UNSUPPORTED_VERSION
        body["api_keys"] = [
            {"api_key": API_VERSIONS, "min_version": known.low, "max_version": known.high}
        ]
        return SIZE.pack(correlation_id) + encode_body("ApiVersionsResponse", 0, body)

    def response(self, context: Context, version: int, frame: bytes) -> tuple[bytes, str]:
        """An ApiVersions response with versions that we know, and what was changed; the very same
        frame when nothing is. `DissectError` when it cannot be read."""
        rest = frame[4 + ID_BYTES :]
        # Brokers offer the same on every connection.
        cap = _capped if len(frame) <= CACHED_BYTES else _capped.__wrapped__
        capped, text = cap(version, rest)
        if not text:
            return frame, ""
        context.hub.once(
            f"capped {text}",
            f"{context.broker} offers versions that kafkascope does not know and whose addresses "
            f"it has to replace; clients are offered less: {text} (--no-clamp passes them all)",
        )
        payload = frame[4 : 4 + ID_BYTES] + capped
        return SIZE.pack(len(payload)) + payload, f"versions capped: {text}"


@lru_cache(CACHED)
def _capped(version: int, rest: bytes) -> tuple[bytes, str]:
    """What follows the correlation id, capped, and a text that says what was ("": nothing)."""
    decoded = decode_response(bytes(ID_BYTES) + rest, API_VERSIONS, version)
    capped = []
    offered = decoded.body["api_keys"]
    for api in tuple(offered):
        key = api["api_key"]
        if key not in ENDPOINTS or api["max_version"] <= APIS[key].versions.high:
            continue
        known = APIS[key].versions.high
        capped.append(f"{APIS[key].name} {api['max_version']} -> {known}")
        api["max_version"] = known
        if api["min_version"] > known:
            offered.remove(api)  # an empty range would be a lie (min above max)
    if not capped:
        return b"", ""
    body = write_layout(decoded.layout, decoded.body)
    changed = rest[: decoded.body_at - ID_BYTES] + body + rest[decoded.end - ID_BYTES :]
    return changed, ", ".join(capped)
