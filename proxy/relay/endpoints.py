"""Broker addresses in responses: which they are, and putting ours in their place (reverse mode).

An API's declaration says where clients read addresses that they connect to; a table says which
host and port fields are none of ours. A test holds both against every message, so a new field is
noticed.
Node ids never change.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, Final, Protocol

from kafkascope.analyzer.conversation.tampering import ADDRESSES
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.registry import (
    API_VERSIONS,
    APIS,
    decode_response,
    layout_of,
    read_layout,
    response_header_version,
    unsupported_response,
    write_layout,
)
from kafkascope.proxy.limits import LIMITS
from kafkascope.proxy.relay.context import Context
from kafkascope.proxy.relay.pairing import SIZE, PendingRequest
from kafkascope.proxy.relay.skipping import Program, Unwalkable, program, tail_of

METADATA, FIND_COORDINATOR, DESCRIBE_CLUSTER, SHARE_FETCH, SHARE_ACKNOWLEDGE = 3, 10, 60, 78, 79

# Of the responses with addresses to connect to. KIP-699: FindCoordinator has one until
# version 3, then several. KIP-951: Produce (from 10) and Fetch (from 16) in tag 0.
ENDPOINTS: Final = {key: api.endpoints for key, api in APIS.items() if api.endpoints}

# Fields of responses that hold addresses and are never touched: message.path -> why.
LEFT_ALONE: Final[dict[str, str]] = {
    "DescribeGroupsResponse.groups.members.client_host": "where a member is, not a broker",
    "ConsumerGroupDescribeResponse.groups.members.client_host": "where a member is",
    "ShareGroupDescribeResponse.groups.members.client_host": "where a member is",
    "StreamsGroupDescribeResponse.groups.members.client_host": "where a member is",
    "StreamsGroupDescribeResponse.groups.members.user_endpoint": "the application's own endpoint",
    "StreamsGroupHeartbeatResponse.partitions_by_user_endpoint": "the application's own endpoint",
    "DescribeAclsResponse.resources.acls.host": "from where a principal may come",
    "DeleteAclsResponse.filter_results.matching_acls.host": "from where a principal may come",
    "DescribeQuorumResponse.nodes.listeners": "controllers talk to each other",
    "VoteResponse.node_endpoints": "controllers talk to each other",
    "BeginQuorumEpochResponse.node_endpoints": "controllers talk to each other",
    "EndQuorumEpochResponse.node_endpoints": "controllers talk to each other",
    "FetchSnapshotResponse.node_endpoints": "controllers talk to each other",
    "UpdateRaftVoterResponse.current_leader": "controllers talk to each other",
}

# Small and rare: kept until they are whole. The others carry records and may be huge.
WHOLE: Final = frozenset({METADATA, FIND_COORDINATOR, DESCRIBE_CLUSTER, SHARE_ACKNOWLEDGE})

# Their `brokers` are all that the cluster has.
CENSUS: Final = frozenset({METADATA, DESCRIBE_CLUSTER})
# DescribeCluster's endpoint_type for controllers, which are no brokers of ours.
CONTROLLERS: Final = 2
# A tag that no release uses; readers skip what they do not know (KIP-482).
PADDING_TAG: Final = 100


class Directory(Protocol):
    """Who has a listener for each broker."""

    generation: int
    """Changes whenever the result of `advertise` may."""

    def advertise(self, context: Context, node_id: int, host: str, port: int) -> tuple[str, int]:
        """The address under which that broker is reached through us; `OSError` if there is none.
        The listener accepts connections when this returns."""

    def listed(self, context: Context, node_ids: frozenset[int]) -> None:
        """These are all brokers of the cluster now; others are gone."""

    def brokers(self, context: Context) -> list[tuple[int, str, int]]:
        """All brokers that are known: node id and our address for it."""


class Endpoints:
    """Puts our addresses in place of the brokers'."""

    def __init__(self, directory: Directory) -> None:
        self.directory = directory
        self._known: dict[Any, tuple[bytes | None, str, frozenset[int]]] = {}
        """Response -> what became of it (None: nothing), what was changed, the brokers listed."""

    # --- whole responses

    def response(
        self, context: Context, request: PendingRequest, frame: bytes
    ) -> tuple[bytes, str]:
        """The frame with our addresses, and what was changed; the very same frame when nothing is.
        `DissectError` when it cannot be read, `OSError` when nothing listens for a broker."""
        key = request.key
        if key not in ENDPOINTS:
            return frame, ""
        # Brokers say the same again and again; what becomes of it changes when a broker moves.
        what = (request.version, context.advertise_host, self.directory.generation, frame[8:], key)
        known = self._known.get(what)
        if known is None:
            changed, comment, listed = self._response(context, request, frame)
            if len(frame) <= LIMITS.cached_response_bytes:
                # The directory may have learned something from this very frame.
                what = (what[0], what[1], self.directory.generation, what[3], key)
                if len(self._known) >= LIMITS.cached_responses:
                    self._known.clear()
                self._known[what] = (None if changed is frame else changed, comment, listed)
            return changed, comment
        changed_before, comment, listed = known
        self.directory.listed(context, listed)
        if changed_before is None:
            return frame, comment
        context.hub.metrics.add("rewrites_total", APIS[key].name)
        return changed_before[:4] + frame[4:8] + changed_before[8:], comment

    def _response(
        self, context: Context, request: PendingRequest, frame: bytes
    ) -> tuple[bytes, str, frozenset[int]]:
        key, version = request.key, request.version
        decoded = decode_response(frame[4:], key, version)
        if key == METADATA:
            from kafkascope.analyzer.bodies.facts import learn

            learn(decoded.layout, decoded.body, context.hub.names)
        listed = _brokers(key, decoded.body)
        self.directory.listed(context, listed)  # first: whoever is gone makes room
        changes = self._change(context, key, decoded.body)
        if not changes:
            return frame, "", listed
        context.hub.metrics.add("rewrites_total", APIS[key].name)
        payload = decoded.with_body(frame[4:], decoded.body)
        return SIZE.pack(len(payload)) + payload, ADDRESSES + ", ".join(changes), listed

    def _change(self, context: Context, key: int, body: Body) -> list[str]:
        if key == DESCRIBE_CLUSTER and body.get("endpoint_type") == CONTROLLERS:
            return []
        changes = []
        for name in ENDPOINTS[key]:
            if name and name not in body:
                continue
            for struct_ in body[name] if name else (body,):
                if not struct_.get("host"):
                    continue  # "none", or not in this version
                node_id = _node_id(struct_)
                host, port = struct_["host"], struct_["port"]
                ours = self.directory.advertise(context, node_id, host, port)
                if ours != (host, port):
                    struct_["host"], struct_["port"] = ours
                    changes.append(f"node {node_id} {host}:{port} -> {ours[0]}:{ours[1]}")
        return changes

    # --- ends of responses whose start is gone

    def tail(self, context: Context, request: PendingRequest, tail: bytes) -> tuple[bytes, str]:
        """The end of a response with our addresses, of the very same length, and what changed.

        Spare bytes go into an unknown tag. What does not fit is left out: the client asks for
        metadata then, and learns our addresses from it.
        """
        key, version = request.key, request.version
        if not filled(key, tail[0]):
            return tail, ""
        layout = _tail_layout(key, version)
        body, end = read_layout(layout, tail)
        if end != len(tail):
            raise DissectError("bytes are left over after the node endpoints")
        changes = self._change(context, key, body)
        if not changes:
            return tail, ""
        context.hub.metrics.add("rewrites_total", APIS[key].name)
        try:
            return _padded(layout, body, len(tail)), ADDRESSES + ", ".join(changes)
        except DissectError:
            body["node_endpoints"] = []
            return _padded(layout, body, len(tail)), "addresses omitted: " + ", ".join(changes)


def _node_id(struct_: Body) -> int:
    node_id: int = struct_["broker_id"] if "broker_id" in struct_ else struct_["node_id"]
    return node_id


def _brokers(key: int, body: Body) -> frozenset[int]:
    if key not in CENSUS or body.get("endpoint_type") == CONTROLLERS:
        return frozenset()
    return frozenset(map(_node_id, body["brokers"]))


@lru_cache(4096)
def walk_of(key: int, version: int) -> Program | None:
    """The steps to the addresses at the end of a response that may be huge. Empty: it has none.
    None: they are elsewhere, or the version is not known."""
    if key not in ENDPOINTS:
        return ()
    if key in WHOLE or version not in APIS[key].versions:
        return None
    name, field = f"{APIS[key].name}Response", "node_endpoints"
    if not layout_of(name, version).has(field):
        return ()
    return program(name, version, response_header_version(key, version), field)


def filled(key: int, first: int) -> bool:
    """Whether there are addresses at the end of a response, by the first byte of that end."""
    return first > 1 if key == SHARE_FETCH else first > 0


def empty(key: int, steps: Program, payload: memoryview | bytes) -> bool:
    """Whether a whole response is sound and has no addresses at its end."""
    try:
        return not filled(key, payload[tail_of(steps, payload)])
    except (IndexError, Unwalkable):
        return False


@cache
def _tail_layout(key: int, version: int) -> Layout:
    layout = layout_of(f"{APIS[key].name}Response", version)
    names = [slot.name for slot in layout.body.slots]
    at = names.index("node_endpoints") if "node_endpoints" in names else len(names)
    return replace(layout, body=replace(layout.body, slots=layout.body.slots[at:]))


def _padded(layout: Layout, body: Body, size: int) -> bytes:
    """A tail of exactly `size` bytes; `DissectError` when it needs more."""
    plain = write_layout(layout, body)
    spare = size - len(plain)
    if spare == 0:
        return plain
    if spare == 1:
        return _longer(layout, plain)
    known = body.get("_tagged_fields", [])
    for filler in range(max(spare - 2, 0), max(spare - 8, -1), -1):
        tags = [*known, {"tag": PADDING_TAG, "data": bytes(filler)}]
        padded = write_layout(layout, {**body, "_tagged_fields": tags})
        if size - 1 <= len(padded) <= size:
            return padded if len(padded) == size else _longer(layout, padded)
    raise DissectError(f"{len(plain)} bytes exceed {size}")


def _longer(layout: Layout, tail: bytes) -> bytes:
    """A tail that is one byte longer, too little for a tag: a varint with an empty last byte is as
    valid."""
    at = 0 if layout.body.slots else 2
    while tail[at] & 0x80:
        at += 1
    return tail[:at] + bytes((tail[at] | 0x80, 0)) + tail[at + 1 :]


# Of the correlation id, first in every response's payload.
ID_BYTES: Final = 4


class VersionLimiter:
    """Caps the versions in ApiVersions responses where a newer one would hide addresses from us.

    A client that speaks a version which we cannot read gets addresses that lead past the proxy. So
    APIs whose responses hold addresses are offered up to the version that we know; all others stay
    as the broker offers them."""

    def newer(self, version: int) -> bool:
        """Whether that version of ApiVersions is one that we do not know."""
        return version not in APIS[API_VERSIONS].versions

    def refusal(self, version: int, correlation_id: int) -> bytes | None:
        """Our response to an ApiVersions request of a version that we do not know: ask again, lower
        (KIP-511). Else the broker's response could not be capped. None: the version is known."""
        if not self.newer(version):
            return None
        known = APIS[API_VERSIONS].versions
        return unsupported_response(correlation_id, {API_VERSIONS: (known.low, known.high)})

    def response(self, context: Context, version: int, frame: bytes) -> tuple[bytes, str]:
        """An ApiVersions response with versions that we know, and what was changed; the very same
        frame when nothing is. `DissectError` when it cannot be read."""
        rest = frame[4 + ID_BYTES :]
        # Brokers offer the same on every connection.
        cap = _capped if len(frame) <= LIMITS.cached_response_bytes else _capped.__wrapped__
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


@lru_cache(LIMITS.cached_responses)
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
