"""Requests that wait for their answers: by correlation id, in the order in which they were sent."""

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


REQUEST_BYTES: Final = 1_000
"""What one takes beside its bytes and the values of its body, so that many tiny ones do not escape
the limits."""
SMALL: Final = 4096
"""Bytes of a request of which the values are not counted one by one."""
SMALL_TIMES: Final = 16
"""What decoding such a one may make of it, as a rule."""

SASL_TOKEN: Final = "SaslToken"
"""What rows of raw tokens are called in place of an API."""

OUT_OF_ORDER: Final = "answered out of order, after "
SKIPPED: Final = "skipped: the broker answered "
"""How a note and a reason begin."""


class Pending(Resumable):
    """A request that has no answer yet."""

    STATE = (
        "answer",
        "api",
        "blind",
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
        """Its first packet, and its place in what the client sends."""
        self.header = header
        """None for a raw SASL token."""
        self.api = api
        self.blind = False
        """A Produce of which the capture does not tell whether it is to be answered."""
        self.id = ""
        self.frame: Frame | None = None
        """None while the request's last bytes are missing, though its answer was seen."""
        self.decoded: Decoded | None = None
        """None for one that cannot be decoded."""
        self.body: Body | None = None
        self.undecoded: tuple[Undecoded, ...] = ()
        self.answer: Frame | None = None
        """An answer that came before the whole request was seen."""
        self.software = ""
        self.notes: tuple[Note, ...] = ()
        self.session: FetchSession | None = None
        self.held = 0

    def dump(self) -> Dump:
        """Return the state; the body is decoded anew from the frame."""
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
    """Return the memory that a waiting request takes: its bytes, and the values of its body."""
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
    """Of its first byte in the stream."""
    correlation_id: int
    api: str
    responses: int
    """How many there were by then that overtook an earlier request."""

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
    found = _LATER.fullmatch(text)
    return None if found is None else (found[1], found[2], int(found[3] or 1))


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
        if (found := _PARTIAL.fullmatch(note.text)) is not None:
            return int(found[1]), int(found[2])
    return None


class InFlight(Resumable):
    """The table of one connection. An id may be there several times: the oldest is answered
    first."""

    __slots__ = ("_by_id", "_bytes", "_count", "_most", "_most_bytes", "late", "passed", "tokens")

    def __init__(self, limits: ConversationLimits = LIMITS) -> None:
        self._most, self._most_bytes = limits.requests, limits.request_bytes
        # A dict looks for its first key behind all that were deleted before it.
        self._by_id: OrderedDict[int, list[Pending]] = OrderedDict()
        self._count = 0
        self._bytes = 0
        self.tokens: list[Pending] = []
        """Raw SASL tokens, which have no id."""
        self.late = 0
        """Answers that are still to come to requests that were given up. A connection's requests
        are answered in their order: behind an answer to a later one none will."""
        self.passed: Overtaking | None = None
        """The latest request that was answered while an earlier one waited."""

    def dump(self) -> Dump:
        waiting = [each.dump() for found in self._by_id.values() for each in found]
        tokens = [each.dump() for each in self.tokens]
        passed = None if self.passed is None else list(self.passed)
        return {"waiting": waiting, "tokens": tokens, "late": self.late, "passed": passed}

    def load(self, state: Dump) -> Self:
        for each in map(loaded, state["waiting"]):
            assert each.header is not None
            self.add(each.header.correlation_id, each)
        self.tokens = [loaded(each) for each in state["tokens"]]
        self.late = state["late"]
        passed = state["passed"]
        self.passed = None if passed is None else Overtaking(*passed)
        return self

    def __len__(self) -> int:
        return self._count

    def __contains__(self, correlation_id: int) -> bool:
        return correlation_id in self._by_id

    @property
    def held(self) -> int:
        return self._bytes

    def ids(self) -> list[int]:
        """Return the ids that are waited for, oldest first."""
        return list(self._by_id)

    def add(self, correlation_id: int, pending: Pending) -> list[Pending]:
        """Wait for an answer; gives up and returns the oldest ones when there is too much."""
        waiting = self._by_id.get(correlation_id)
        if waiting is None:
            self._by_id[correlation_id] = [pending]
        else:
            waiting.append(pending)
        self._count += 1
        pending.held = held_by(pending)
        self._bytes += pending.held
        if self._count <= self._most and self._bytes <= self._most_bytes:
            return []
        return self.oldest(1, self._most_bytes)

    def oldest(self, least: int, held: int) -> list[Pending]:
        """Take out the oldest ones until they hold no more than this; `least` of them stay, unless
        they are too many."""
        dropped: list[Pending] = []
        late = self.late
        while self._count > self._most or (self._bytes > held and self._count > least):
            oldest = self.take(next(iter(self._by_id)))
            if oldest is not None:
                dropped.append(oldest)
                late += not oldest.blind
        self.late = late
        return dropped

    def take(self, correlation_id: int, *, latest: bool = False) -> Pending | None:
        """Return the request that an answer of this id belongs to; `latest`: where the answers to
        those before may have been missed."""
        waiting = self._by_id.get(correlation_id)
        if waiting is None:
            return None
        pending = waiting.pop(-1 if latest else 0)
        if not waiting:
            del self._by_id[correlation_id]
        self._count -= 1
        self._bytes -= pending.held
        self.late = 0
        # Brokers answer the requests of a connection in order (Kafka's protocol guide, "Network");
        # most connections have one request in flight, so that there is nothing to compare.
        if self._count and next(iter(self._by_id.values()))[0].origin[1] < pending.origin[1]:
            self._overtake(pending)
        return pending

    def _overtake(self, pending: Pending) -> None:
        """Take note of a request that is answered before the oldest one."""
        header, oldest = pending.header, next(iter(self._by_id.values()))[0]
        if header is None or oldest.header is None or oldest.blind:
            return
        # Clients count upwards: else it is the order of a capture that began among lost packets.
        if header.correlation_id < oldest.header.correlation_id:
            return
        passed = self.passed
        count = 1 if passed is None else passed.responses + 1
        offset = pending.origin.offset
        if passed is None or passed.offset < offset:
            passed = Overtaking(offset, header.correlation_id, pending.api, count)
        self.passed = passed._replace(responses=count)

    def overtaking(self, pending: Pending) -> Overtaking | None:
        """Return the later request that was answered before this one."""
        passed, header = self.passed, pending.header
        if passed is None or header is None or pending.origin.offset > passed.offset:
            return None
        return passed if header.correlation_id < passed.correlation_id else None

    def before(self, offset: int) -> list[Pending]:
        """Take out the requests that were sent before that offset."""
        out: list[Pending] = []
        for correlation_id in list(self._by_id):
            waiting = self._by_id[correlation_id]
            while waiting and waiting[0].origin.offset < offset:
                out.append(waiting[0])
                self.take(correlation_id)
        return sorted(out, key=_sent)

    def all(self) -> list[Pending]:
        """Take out everything, tokens included, in the order of sending."""
        out = [pending for waiting in self._by_id.values() for pending in waiting] + self.tokens
        self._by_id = OrderedDict()
        self._count = self._bytes = 0
        self.tokens = []
        return sorted(out, key=_sent)

    def origins(self) -> list[Origin]:
        found = [pending.origin for waiting in self._by_id.values() for pending in waiting]
        return found + [token.origin for token in self.tokens] if self.tokens else found


def _sent(pending: Pending) -> int:
    return pending.origin.offset
