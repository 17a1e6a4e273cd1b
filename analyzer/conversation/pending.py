"""Requests in flight: by correlation id, in the order in which they were sent."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from kafkascope.analyzer.bodies.dissection import dissect_request
from kafkascope.analyzer.conversation.limits import LIMITS, ConversationLimits
from kafkascope.analyzer.model import Frame, Note, Origin
from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.dissectors.codec.reader import memory_of

if TYPE_CHECKING:
    from kafkascope.analyzer.bodies.fetch_sessions import FetchSession
    from kafkascope.analyzer.model import Undecoded
    from kafkascope.dissectors.codec.reader import Body
    from kafkascope.dissectors.registry import Decoded, RequestHeader


# The memory of a request in flight is estimated, because walking the values of each body would
# cost more than decoding it. Only large bodies are walked (`memory_of`): there, lists of many small
# values take far more than their bytes.

# Memory of a request beside its bytes and the values of its body: without it, a flood of tiny
# requests would not reach the limits.
REQUEST_BYTES: Final = 1_000
# Size up to which the memory of a body is estimated.
SMALL: Final = 4096
# Memory of a small body's values for each byte on the wire.
SMALL_TIMES: Final = 16

SASL_TOKEN: Final = "SaslToken"
"""The API in rows of raw tokens, which have no header."""

OUT_OF_ORDER: Final = "answered out of order, after "
SKIPPED: Final = "skipped: the broker answered "
"""The first words of a note, and of a reason, that names an overtaking request; `overtaken_by`
reads them back."""


class Pending(Resumable):
    """A request in flight."""

    STATE = (
        "answer",
        "api",
        "acks_unknown",
        "frame",
        "header",
        "held",
        "id",
        "notes",
        "origin",
        "session",
        "software",
        "undecoded",
    )
    __slots__ = (*STATE, "body", "decoded")

    def __init__(self, origin: Origin, header: RequestHeader | None, api: str) -> None:
        self.origin = origin
        """Its first packet, and its offset in the client's stream."""
        self.header = header
        """None for a raw SASL token."""
        self.api = api
        self.acks_unknown = False
        """A Produce whose acks field the snaplen cut off: it may be due no response (acks=0)."""
        self.id = ""
        self.frame: Frame | None = None
        """None while the request's last bytes are missing, though its response was seen."""
        self.decoded: Decoded | None = None
        """None if it cannot be decoded."""
        self.body: Body | None = None
        self.undecoded: tuple[Undecoded, ...] = ()
        self.answer: Frame | None = None
        """A response that came before the whole request was seen."""
        self.software = ""
        self.notes: tuple[Note, ...] = ()
        self.session: FetchSession | None = None
        self.held = 0

    def dump(self) -> Dump:
        """Return the state without the body, which `load` decodes from the frame again."""
        return {**super().dump(), "decoded": self.body is not None, "origin": list(self.origin)}

    def load(self, state: Dump) -> Self:
        super().load({**state, "origin": Origin(*state["origin"])})
        if state["decoded"] and self.frame is not None and self.header is not None:
            self.decoded = dissect_request(self.frame, self.header)[0]
            self.body = None if self.decoded is None else self.decoded.body
        return self


def loaded(state: Dump) -> Pending:
    return Pending(Origin(*state["origin"]), state["header"], state["api"]).load(state)


def held_by(pending: Pending) -> int:
    """Return the memory of a request in flight: its bytes, and the values of its body."""
    if pending.frame is None:
        return REQUEST_BYTES
    size = len(pending.frame.payload)
    if pending.body is None:
        return REQUEST_BYTES + size
    if size <= SMALL:
        return REQUEST_BYTES + size * SMALL_TIMES
    return REQUEST_BYTES + size + memory_of(pending.body)


class Overtaking(NamedTuple):
    """A request that was answered before an earlier one of its connection."""

    offset: int
    """Offset of its first byte in the stream."""
    correlation_id: int
    api: str
    responses: int
    """Count of responses on the connection so far that overtook an earlier request."""

    def note(self) -> Note:
        """Return the note for the earlier request, which was answered later."""
        return Note("warning", f"{OUT_OF_ORDER}{self}", "response")

    def reason(self) -> str:
        return f"{SKIPPED}{self}"

    def __str__(self) -> str:
        text = f"{self.api} {self.correlation_id}, a later request"
        return text if self.responses == 1 else f"{text}, the last of {self.responses}"


_LATER: Final = re.compile(
    rf"(?:{OUT_OF_ORDER}|{SKIPPED})(.+) (-?\d+), a later request(?:, the last of (\d+))?"
)


def overtaken_by(text: str) -> tuple[str, str, int] | None:
    """Return API, correlation id and number of responses of the `Overtaking` in a note or
    reason."""
    match = _LATER.fullmatch(text)
    return None if match is None else (match[1], match[2], int(match[3] or 1))


_PARTIAL: Final = re.compile(r"(\d+) of (\d+) bytes of its response arrived")


def partial_note(response: Frame, ended_ns: int | None) -> Note:
    """Return the note for a request whose response the end of the connection cut off. `ended_ns`:
    when the connection was closed first."""
    text = f"{len(response.payload) + 4} of {response.wire_bytes} bytes of its response arrived"
    if ended_ns is not None and response.first_ns > ended_ns:
        text += ", after the connection was closed"
    return Note("warning", text, "response")


def partial_response(notes: Iterable[Note]) -> tuple[int, int] | None:
    """Return how many bytes of a response arrived, of how many, as its note says."""
    for note in notes:
        if (match := _PARTIAL.fullmatch(note.text)) is not None:
            return int(match[1]), int(match[2])
    return None


class InFlight(Resumable):
    """The requests in flight of one connection. Several may have the same id: their responses come
    in the order in which they were sent."""

    __slots__ = (
        "_by_id",
        "_bytes",
        "_count",
        "_most",
        "_most_bytes",
        "last_overtaking",
        "responses_after_eviction",
        "tokens",
    )

    def __init__(self, limits: ConversationLimits = LIMITS) -> None:
        self._most, self._most_bytes = limits.requests, limits.request_bytes
        # Not a plain dict: the oldest key is looked up for each response, and a dict finds its
        # first key by walking over the slots of all keys that were deleted before it.
        self._by_id: OrderedDict[int, list[Pending]] = OrderedDict()
        self._count = 0
        self._bytes = 0
        self.tokens: list[Pending] = []
        """Raw SASL tokens, which have no id."""
        self.responses_after_eviction = 0
        """Responses to evicted requests that may still come: none after the response to a later
        request, because brokers answer in order."""
        self.last_overtaking: Overtaking | None = None
        """The latest request that was answered while an earlier one waited."""

    def dump(self) -> Dump:
        overtaking = self.last_overtaking
        return {
            "requests": [pending.dump() for same_id in self._by_id.values() for pending in same_id],
            "tokens": [token.dump() for token in self.tokens],
            "responses_after_eviction": self.responses_after_eviction,
            "last_overtaking": None if overtaking is None else list(overtaking),
        }

    def load(self, state: Dump) -> Self:
        for pending in map(loaded, state["requests"]):
            assert pending.header is not None
            self.add(pending.header.correlation_id, pending)
        self.tokens = list(map(loaded, state["tokens"]))
        self.responses_after_eviction = state["responses_after_eviction"]
        overtaking = state["last_overtaking"]
        self.last_overtaking = None if overtaking is None else Overtaking(*overtaking)
        return self

    def __len__(self) -> int:
        return self._count

    def __contains__(self, correlation_id: int) -> bool:
        return correlation_id in self._by_id

    @property
    def held(self) -> int:
        return self._bytes

    def ids(self) -> list[int]:
        """Return the correlation ids in flight, the oldest first."""
        return list(self._by_id)

    def add(self, correlation_id: int, pending: Pending) -> list[Pending]:
        """Add a request; return the oldest ones where the limits evict them."""
        same_id = self._by_id.get(correlation_id)
        if same_id is None:
            self._by_id[correlation_id] = [pending]
        else:
            same_id.append(pending)
        self._count += 1
        pending.held = held_by(pending)
        self._bytes += pending.held
        if self._count <= self._most and self._bytes <= self._most_bytes:
            return []
        return self.evict_oldest(1, self._most_bytes)

    def evict_oldest(self, least: int, held: int) -> list[Pending]:
        """Evict the oldest requests until the others take at most `held` bytes, and are not too
        many; the last `least` stay whatever they take."""
        dropped: list[Pending] = []
        responses = self.responses_after_eviction  # `take` sets it to 0
        while self._count > self._most or (self._bytes > held and self._count > least):
            oldest = self.take(next(iter(self._by_id)))
            if oldest is not None:
                dropped.append(oldest)
                responses += not oldest.acks_unknown
        self.responses_after_eviction = responses
        return dropped

    def take(self, correlation_id: int, *, latest: bool = False) -> Pending | None:
        """Remove and return the request that a response with this id belongs to: the oldest one
        with the id, or the `latest` where responses to the earlier ones may be in a gap."""
        same_id = self._by_id.get(correlation_id)
        if same_id is None:
            return None
        pending = same_id.pop(-1 if latest else 0)
        if not same_id:
            del self._by_id[correlation_id]
        self._count -= 1
        self._bytes -= pending.held
        self.responses_after_eviction = 0
        # Brokers answer the requests of a connection in order (Kafka's protocol guide, "Network");
        # most connections have one request in flight, so that there is nothing to compare.
        if self._count and next(iter(self._by_id.values()))[0].origin[1] < pending.origin[1]:
            self._overtake(pending)
        return pending

    def _overtake(self, pending: Pending) -> None:
        """Note a request that is answered before the oldest one."""
        header, oldest = pending.header, next(iter(self._by_id.values()))[0]
        if header is None or oldest.header is None or oldest.acks_unknown:
            return
        # Clients count correlation ids upward. Where an older request has the larger id, the
        # capture lost packets in between, and the broker answered nothing out of order.
        if header.correlation_id < oldest.header.correlation_id:
            return
        overtaking = self.last_overtaking
        count = 1 if overtaking is None else overtaking.responses + 1
        offset = pending.origin.offset
        if overtaking is None or overtaking.offset < offset:
            overtaking = Overtaking(offset, header.correlation_id, pending.api, count)
        self.last_overtaking = overtaking._replace(responses=count)

    def overtaking(self, pending: Pending) -> Overtaking | None:
        """Return the later request that was answered before this one."""
        overtaking, header = self.last_overtaking, pending.header
        if overtaking is None or header is None or pending.origin.offset > overtaking.offset:
            return None
        return overtaking if header.correlation_id < overtaking.correlation_id else None

    def take_before(self, offset: int) -> list[Pending]:
        """Remove and return the requests that were sent before an offset of the client's stream."""
        out: list[Pending] = []
        for correlation_id in list(self._by_id):
            same_id = self._by_id[correlation_id]
            while same_id and same_id[0].origin.offset < offset:
                out.append(same_id[0])
                self.take(correlation_id)
        return sorted(out, key=_sent)

    def take_all(self) -> list[Pending]:
        """Remove and return everything, tokens included, in the order of sending."""
        out = [pending for same_id in self._by_id.values() for pending in same_id] + self.tokens
        self._by_id = OrderedDict()
        self._count = self._bytes = 0
        self.tokens = []
        return sorted(out, key=_sent)

    def origins(self) -> list[Origin]:
        origins = [pending.origin for same_id in self._by_id.values() for pending in same_id]
        return origins + [token.origin for token in self.tokens]


def _sent(pending: Pending) -> int:
    return pending.origin.offset
