"""Reads one ordinary Kafka connection: chunks in, rows out. Frames, pairs, waits, what bodies say.

It takes what most connections are made of: whole requests and responses in order, of APIs and
versions that are known. Whatever else comes (`take` returns False) is the general conversation's
(`analyzer/conversation`), which goes on with the state that is here: requests in flight, and bytes
of frames that are not whole. Compiled by mypyc; the same source runs without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from kafkascope.kernel.path import Path
from kafkascope.kernel.walker import (
    ABSENT,
    BODY_LIMIT,
    Facts,
    Node,
    Partition,
    Texts,
    walk_request,
    walk_response,
)

PRODUCE: Final[i64] = 0
FETCH: Final[i64] = 1
JOIN_GROUP: Final[i64] = 11
SYNC_GROUP: Final[i64] = 14

# A larger size is no frame's: as `frame_bytes` of `ConversationLimits`, which says why.
MAX_FRAME: Final[i64] = 512 << 20
# Bytes of one frame that is not whole; the general conversation bounds longer ones.
MAX_HELD: Final[i64] = 64 << 20
# Requests that wait; where more do, the general conversation bounds them.
MAX_IN_FLIGHT: Final[i64] = 1000
# Before this version records are of magic 0 and 1, which is worth a note: `contents.NEWER`.
OLDER: Final[i64] = 4
# Memory of a request that waits beside its bytes and what its body says.
REQUEST: Final[i64] = 1000
# Memory of what is known of a packet's part of a frame.
PIECE: Final[i64] = 250
# Offsets beyond it are none of Kafka's, and could not be added to.
MAX_OFFSET: Final[i64] = 1 << 62
# Bytes of the header of a record batch.
HEADER: Final[i64] = 61
# TOPIC_AUTHORIZATION_FAILED is found before anything is read; brokers wait for the other
# partitions. All other errors may occur while a broker waits.
DENIED: Final[i64] = 29
SESSION_ERRORS: Final = frozenset({70, 71, 122, 123, 133})
"""FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, SHARE_SESSION_NOT_FOUND,
INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED: the session is gone."""
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


class Plan:
    """How both sides of a version are read: see `analyzer/conversation/ordinary.py`."""

    def __init__(self, api: str, key: i64, version: i64, request: Node, response: Node) -> None:
        self.api = api
        self.key: i64 = key
        self.version: i64 = version
        self.request = request
        self.response = response
        self.flexible: bool = False
        """The header of a request has tags."""
        self.response_at: i64 = 4
        """Where the body of a response begins, when its header has no tags."""
        self.request_teaches: bool = False
        """A request may tell names of topics or addresses of nodes; so the next one."""
        self.response_teaches: bool = False


@final
class Pair:
    """A request with its response, while it waits for it and after."""

    def __init__(self, reader: Reader, plan: Plan, facts: Facts) -> None:
        self.reader = reader
        self.plan = plan
        self.facts = facts
        self.number: i64 = 0
        """Given by whoever merges: see `numbering`."""
        self.correlation_id: i64 = 0
        self.client_id: str | None = None
        self.body_at: i64 = 0
        """Offset of the request's body in its payload."""
        self.session: Any = None
        self.answered: bool = False
        self.memory: i64 = 0
        """What its body takes while it waits."""
        self.sends: bool = False
        """The records are in the request."""
        # The request: `data` from `begin` (its size field) to `end`.
        self.data: bytes = b""
        self.begin: i64 = 0
        self.end: i64 = 0
        self.offset: i64 = 0
        self.first_ns: i64 = 0
        self.last_ns: i64 = 0
        self.packet: i64 = 0
        self.file: i64 = 0
        self.place: i64 = 0
        self.pieces: list[Any] | None = None
        """(start, time, packet, file, at) where it came in several packets."""
        # The response.
        self.response: bytes = b""
        self.response_begin: i64 = 0
        self.response_end: i64 = 0
        self.response_offset: i64 = 0
        self.response_first_ns: i64 = 0
        self.response_last_ns: i64 = 0
        self.response_packet: i64 = 0
        self.response_file: i64 = 0
        self.response_place: i64 = 0
        self.response_pieces: list[Any] | None = None
        self.wait: i64 = 0
        self.counted: bool = False
        """Whether the next ones count the records; else `contents` of the general way does."""
        self.records: i64 = 0
        self.batches: i64 = 0
        self.codecs: tuple[str, ...] = ()
        self.batch_producers: tuple[int, ...] = ()
        self.batch_epochs: tuple[int, ...] = ()

    @property
    def origin(self) -> tuple[int, int]:
        """The first packet of the request, and the offset of its first byte in its stream."""
        return self.packet, self.offset

    def value(self, field: i64) -> i64:
        """Return a number by its index in `OWN`, or 14 for the time of the last byte; `ABSENT`
        where there is none. Those of stages are right while the pair is `undisturbed`."""
        if field == 0:
            return self.number
        if field == 1:
            return self.first_ns
        if field == 2:
            return self.correlation_id
        if field == 3:
            return self.end - self.begin
        if field == 4:
            return self.response_end - self.response_begin if self.answered else ABSENT
        if field == 5:
            return self.response_last_ns - self.first_ns if self.answered else ABSENT
        if field == 6:
            return self.response_first_ns - self.last_ns if self.answered else ABSENT
        if field == 7:
            return self.last_ns - self.first_ns
        if field == 8:
            trip = self.trip
            if not self.answered or trip < 0:
                return ABSENT
            served: i64 = self.response_first_ns - self.last_ns - trip
            return served if served > 0 else 0
        if field == 9:
            return self.response_last_ns - self.response_first_ns if self.answered else ABSENT
        if field == 10:
            return self.wait
        if field == 11:
            return self.records if self.facts.carries else ABSENT
        if field == 12:
            return self.batches if self.facts.carries else ABSENT
        if field == 14:
            return self.response_last_ns if self.answered else ABSENT
        return self.facts.base_offset if self.facts.base_offset >= 0 else ABSENT

    @property
    def trip(self) -> i64:
        """Nanoseconds from the capture point to the broker and back; negative where that was
        unknown when it began."""
        return self.reader.path.trip(self.reader.direction, self.first_ns)

    def undisturbed(self) -> bool:
        """Return whether nothing happened on the path since it began, so that times of first and
        last bytes tell all of its stages."""
        return self.reader.path.quiet(self.first_ns)

    def is_ordinary(self) -> bool:
        """Return whether `value` and `about` tell all of its row."""
        return self.counted and self.undisturbed()

    def own(self) -> tuple[Any, ...]:
        out: list[Any] = []
        for field in range(14):
            value = self.value(field)
            if value == ABSENT:
                out.append(None)
            else:
                out.append(value)
        if self.answered:
            out.append((self.packet, self.response_packet))
        else:
            lone = (self.packet,)
            out.append(lone)
        return tuple(out)

    def about(self) -> tuple[Any, ...]:
        """Return what decides about all other columns."""
        facts = self.facts
        errors = facts.errors
        session = self.session
        return (
            self.reader,
            self.trip,
            self.plan,
            self.client_id,
            self.answered,
            facts.throttle,
            facts.acks,
            listed(facts.topics),
            None if facts.topic_ids is None else tuple(facts.topic_ids),
            numbered(facts.partitions),
            listed(facts.groups),
            listed(facts.members),
            numbered(facts.generations),
            numbered(facts.producer_ids),
            numbered(facts.producer_epochs),
            listed(facts.transactional_ids),
            None if errors is None else tuple(errors),
            self.codecs,
            self.batch_producers,
            self.batch_epochs,
            0 if session is None or not session.incremental else id(session.implied),
        )


def listed(found: dict[str, None] | None) -> tuple[str, ...] | None:
    return None if found is None else tuple(found)


def numbered(found: dict[int, None] | None) -> tuple[int, ...] | None:
    return None if found is None else tuple(found)


OWN: Final = (
    *("number", "time_ns", "correlation_id", "request_bytes", "response_bytes", "latency_ns"),
    *("server_ns", "request_transfer_ns", "serving_ns", "response_transfer_ns", "wait_ns"),
    *("records", "batches", "offset", "frames"),
)
"""Columns of which each exchange has a value of its own, but for its id: see `Pair.own`."""


class Side:
    """The frame of one direction that is not whole yet."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []
        self.held: i64 = 0
        """Bytes in the blocks."""
        self.total: i64 = 0
        """Bytes of the whole frame; 0 while its size is not known."""
        self.pieces: list[Any] = []
        """Where they came from, `start` counted from the start of the frame."""
        self.offset: i64 = 0
        """Stream offset of the frame."""

    def clear(self) -> None:
        self.blocks = []
        self.pieces = []
        self.held = 0
        self.total = 0


class PairSink:
    """What the readers of all connections put out."""

    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        self.fed: i64 = 0
        """Bytes that were taken since somebody looked."""
        self.odd: list[Reader] = []
        """Those that met something odd: see `Reader.take`."""


class Reader:
    """Reads both directions of a connection that is in step."""

    def __init__(
        self, sink: PairSink, plans: dict[int, Plan], texts: Texts, host: Any, direction: i64
    ) -> None:
        """`host` has the plans that are not known yet, and the state that bodies change.
        `direction`: that of the client."""
        self.direction: i64 = direction
        self.plans = plans
        self.texts = texts
        self.host = host
        self.client = Side()
        self.broker = Side()
        self.flight: list[Pair] = []
        self.sink = sink
        self.path = Path()
        """Path of the connection."""
        self.opener: Any = None
        """The `TlsStream` that decrypts what a packet brought; None in plain."""
        self.ends: dict[Any, Any] = {}
        """Log ends by (topic, partition): (time, high watermark, last stable offset)."""
        self.max_partitions: i64 = 0
        """Limit of their count; with more all are forgotten."""
        self.sent_ns: i64 = 0
        """As the attributes of `bodies.waits.Waits`."""
        self.answered_ns: i64 = 0
        self.until_ns: i64 = 0
        self.client_id: str | None = None
        """Client id of the last request."""

    @property
    def held(self) -> int:
        total: i64 = self.client.held + self.broker.held
        total += PIECE * (len(self.client.pieces) + len(self.broker.pieces))
        for pair in self.flight:
            total += REQUEST + pair.end - pair.begin + pair.memory
        return total

    def take(
        self, asks: bool, data: bytes, time_ns: i64, packet: i64, file: i64, place: i64, offset: i64
    ) -> bool:
        """Take bytes of the client (`asks`) or the broker that one packet brought, at `place` in a
        file and `offset` in the stream; return whether all of them were ordinary. If not, the odd
        frame and what follows it is left in the direction's `Side`. Complete pairs are in the
        sink."""
        side = self.client if asks else self.broker
        size: i64 = len(data)
        self.sink.fed += size
        at: i64 = 0
        length: i64
        ok: bool
        if side.held > 0:
            # A frame that began before.
            if side.total == 0:
                at = 4 - side.held
                if at > size:
                    at = size
                hold(side, data, 0, at, time_ns, packet, file, place)
                if side.held < 4:
                    return True
                head = side.blocks[0] if len(side.blocks) == 1 else b"".join(side.blocks)
                length = i64(read_i32_be(head, 0))
                if length < 0 or length > MAX_FRAME:
                    hold(side, data, at, size, time_ns, packet, file, place)
                    return False
                side.total = length + 4
            end: i64 = at + side.total - side.held
            if end > size:
                hold(side, data, at, size, time_ns, packet, file, place)
                return side.held <= MAX_HELD
            hold(side, data, at, end, time_ns, packet, file, place)
            whole = side.blocks[0] if len(side.blocks) == 1 else b"".join(side.blocks)
            first = side.pieces[0]
            begun: i64 = first[1]
            ok = self.frame(
                asks,
                whole,
                0,
                side.total,
                begun,
                time_ns,
                first[2],
                first[3],
                first[4],
                side.offset,
                side.pieces,
            )
            if not ok:
                side.blocks = [whole]
                hold(side, data, end, size, time_ns, packet, file, place)
                return False
            side.clear()
            at = end
        while at < size:
            length = -1
            if size - at >= 4:
                length = i64(read_i32_be(data, at))
                if length < 0 or length > MAX_FRAME:
                    side.offset = offset + at
                    hold(side, data, at, size, time_ns, packet, file, place)
                    return False
            end = at + 4 + length
            if length < 0 or end > size:
                side.offset = offset + at
                hold(side, data, at, size, time_ns, packet, file, place)
                if length >= 0:
                    side.total = length + 4
                return True
            here: i64 = place + at
            ok = self.frame(
                asks, data, at, end, time_ns, time_ns, packet, file, here, offset + at, None
            )
            if not ok:
                side.offset = offset + at
                hold(side, data, at, size, time_ns, packet, file, place)
                return False
            at = end
        return True

    def frame(
        self,
        asks: bool,
        data: bytes,
        at: i64,
        end: i64,
        first_ns: i64,
        last_ns: i64,
        packet: i64,
        file: i64,
        place: i64,
        offset: i64,
        pieces: list[Any] | None,
    ) -> bool:
        """Take a frame, of which `pieces` tell where it came in several packets; whether it is
        ordinary."""
        if asks:
            return self.request(
                data, at, end, first_ns, last_ns, packet, file, place, offset, pieces
            )
        return self.answer(data, at, end, first_ns, last_ns, packet, file, place, offset, pieces)

    def keep(
        self, asks: bool, data: bytes, time_ns: i64, packet: i64, file: i64, place: i64
    ) -> None:
        side = self.client if asks else self.broker
        hold(side, data, 0, len(data), time_ns, packet, file, place)

    def request(
        self,
        data: bytes,
        at: i64,
        end: i64,
        first_ns: i64,
        last_ns: i64,
        packet: i64,
        file: i64,
        place: i64,
        offset: i64,
        pieces: list[Any] | None,
    ) -> bool:
        """Take a frame of the client; whether it is ordinary."""
        # Size, API key, version, correlation id, and the length of the client id.
        if end - at < 14:
            return False
        key: i64 = i64(read_i16_be(data, at + 4))
        version: i64 = i64(read_i16_be(data, at + 6))
        # One number as the key of `plans`: a pair would be an object for each request.
        code: i64 = ((key & 0xFFFF) << 16) | (version & 0xFFFF)
        plan = self.plans.get(code)
        if plan is None:
            plan = self.host.plan_of(key, version)
        if plan is None or len(self.flight) >= MAX_IN_FLIGHT:
            return False
        length: i64 = i64(read_i16_be(data, at + 12))
        body: i64 = at + 14
        client_id: str | None = None
        if length >= 0:
            if body + length > end:
                return False
            client_id = self.texts.of(data[body : body + length])
            body += length
        elif length != -1:
            return False
        if plan.flexible:
            # The count of tagged fields (KIP-482): no release has any in a header of requests.
            if body >= end or data[body] != 0:
                return False
            body += 1
        correlation_id: i64 = i64(read_i32_be(data, at + 8))
        # Clients count correlation ids upwards: two requests in flight with the same one are of
        # something else, or of bytes that are out of step.
        for other in self.flight:
            if other.correlation_id == correlation_id:
                return False
        facts = Facts(self.texts)
        if not walk_request(plan.request, data, body, end, facts):
            return False
        pair = Pair(self, plan, facts)
        pair.memory = BODY_LIMIT - facts.room
        if pieces is not None:
            pair.memory += PIECE * len(pieces)
        pair.sends = facts.spans is not None
        pair.correlation_id = correlation_id
        pair.client_id = client_id
        pair.body_at = body - at - 4
        pair.data = data
        pair.begin = at
        pair.end = end
        pair.offset = offset
        pair.first_ns = first_ns
        pair.last_ns = last_ns
        pair.packet = packet
        pair.file = file
        pair.place = place
        if pieces is not None and len(pieces) > 1:
            pair.pieces = pieces
        self.client_id = client_id
        if plan.request_teaches:
            self.host.learn_request(pair)
        if key == FETCH:
            if facts.session != 0:
                pair.session = self.host.fetch_request(
                    facts.session, facts.epoch, offsets_of(facts.asked), named(facts.forgotten)
                )
        elif key == PRODUCE and facts.acks == 0:
            self.count(pair)
            self.sink.pairs.append(pair)
            return True
        self.flight.append(pair)
        return True

    def answer(
        self,
        data: bytes,
        at: i64,
        end: i64,
        first_ns: i64,
        last_ns: i64,
        packet: i64,
        file: i64,
        place: i64,
        offset: i64,
        pieces: list[Any] | None,
    ) -> bool:
        """Take a frame of the broker; whether it is ordinary."""
        flight = self.flight
        if end - at < 8 or len(flight) == 0:
            return False
        # Brokers answer the requests of a connection in their order (Kafka's protocol guide,
        # "Network"), so that no table of correlation ids is needed.
        pair = flight[0]
        if i64(read_i32_be(data, at + 4)) != pair.correlation_id:
            return False
        plan = pair.plan
        body: i64 = at + 4 + plan.response_at
        if plan.response_at > 4 and (body > end or data[body - 1] != 0):
            return False
        facts = pair.facts
        if not walk_response(plan.response, data, body, end, facts):
            return False
        del flight[0]
        pair.answered = True
        pair.response = data
        pair.response_begin = at
        pair.response_end = end
        pair.response_offset = offset
        pair.response_first_ns = first_ns
        pair.response_last_ns = last_ns
        pair.response_packet = packet
        pair.response_file = file
        pair.response_place = place
        if pieces is not None and len(pieces) > 1:
            pair.response_pieces = pieces
        if plan.response_teaches and (plan.key > FETCH or facts.endpoints):
            self.host.learn_response(pair)
        if plan.key == FETCH:
            error = facts.error
            if (error != 0 and error in SESSION_ERRORS) or (
                facts.new_session != 0 and error == 0 and facts.epoch == 0
            ):
                self.host.fetch_response(
                    facts.session, facts.new_session, error, offsets_of(facts.asked)
                )
            if pair.session is not None:
                only_returned = unlisted(facts)
                if len(only_returned) > 0:
                    pair.session = self.host.fetch_returned(pair.session, only_returned)
        pair.wait = self.waited(pair)
        self.count(pair)
        self.sink.pairs.append(pair)
        return True

    def waited(self, pair: Pair) -> i64:
        """Return the nanoseconds of deliberate waiting: see `bodies.waits.Waits.response`."""
        # A broker takes up the next request of a connection when it has answered the one before:
        # until then it does not read from it (SocketServer mutes the channel).
        sent = pair.first_ns
        taken = sent
        queued: i64 = 0
        if self.sent_ns <= sent:
            if sent < self.answered_ns:
                taken = self.answered_ns
                until = self.until_ns
                if taken < until:
                    until = taken
                if pair.response_last_ns < until:
                    until = pair.response_last_ns
                if until > sent:
                    queued = until - sent
            self.sent_ns = sent
            self.answered_ns = pair.response_first_ns
        key = pair.plan.key
        own: i64 = 0
        if key == FETCH:
            prompt = self.prompt(pair)
            facts = pair.facts
            if facts.error == 0 and not (prompt or (facts.min_bytes <= 0 and facts.replica < 0)):
                own = pair.response_first_ns - taken
                if own > facts.max_wait * 1_000_000:
                    own = facts.max_wait * 1_000_000
        elif key == JOIN_GROUP or key == SYNC_GROUP:
            if pair.facts.error == 0:
                begun = pair.last_ns
                if taken > begun:
                    begun = taken
                own = pair.response_first_ns - begun
        else:
            return queued
        if own > 0:
            if taken + own > self.until_ns:
                self.until_ns = taken + own
            return queued + own
        return queued

    def prompt(self, pair: Pair) -> bool:
        """Return whether the broker had no reason to wait: see `LogEnds.response`."""
        facts = pair.facts
        wanted = facts.min_bytes
        if facts.max_bytes != ABSENT and facts.max_bytes < wanted:
            wanted = facts.max_bytes
        if wanted < 1:
            wanted = 1
        had: i64 = 0
        denied: i64 = 0
        found = facts.told
        if found is None:
            return False
        ends = self.ends
        before: i64 = len(ends)
        time_ns = pair.response_first_ns
        for part in found:
            place = place_of(part)
            if part.error != 0:
                if part.error == DENIED:
                    denied += 1
                ends.pop(place, None)
                continue
            end = ends.get(place)
            if end is None:
                if len(ends) >= self.max_partitions:
                    ends.clear()
                    self.host.forgot()
            elif (
                part.size > 0
                and had < wanted
                and facts.replica < 0
                and i64(end[0]) <= pair.first_ns
            ):
                offset: i64 = end[2] if facts.isolation == 1 else end[1]
                had += bytes_before(
                    pair.response, part.at, part.size, offset, wanted - had, self.host
                )
            ends[place] = self.host.log_end((time_ns, part.high, part.stable))
        if len(ends) > before:
            self.host.grew(len(ends) - before)
        if had >= wanted:
            return True
        if denied > 0:
            session = pair.session
            if session is None:
                return denied >= (0 if facts.asked is None else len(facts.asked))
            implied = session.implied
            return implied is not None and denied >= i64(implied.size)
        return False

    def count(self, pair: Pair) -> None:
        """Count records and batches, where all of them are intact and of magic 2."""
        facts = pair.facts
        spans = facts.spans
        pair.counted = True
        if not facts.carries or spans is None:
            return
        if pair.plan.version < OLDER and pair.plan.key <= FETCH:
            pair.counted = False
            return
        data = pair.data if pair.sends else pair.response
        codecs: dict[str, None] = {}
        producers: dict[int, None] = {}
        epochs: dict[int, None] = {}
        for n in range(0, len(spans), 2):
            at: i64 = spans[n]
            size: i64 = spans[n + 1]
            if size == 0:
                pair.counted = False
                return
            end = at + size
            while at < end:
                left = end - at
                # Of all formats the byte at 16 is the magic. A batch that is cut off is no error:
                # brokers may end a Fetch with a part of one (Kafka's protocol guide).
                if left < 17:
                    break
                if data[at + 16] != 2:
                    pair.counted = False
                    return
                length: i64 = i64(read_i32_be(data, at + 8)) + 12
                if length < HEADER:
                    pair.counted = False
                    return
                if length > left:
                    break
                stated: i64 = i64(read_i32_be(data, at + 17)) & 0xFFFFFFFF
                # From the attributes on. The leader epoch before them is the broker's to set, which
                # must not make the checksum anew.
                computed: i64 = crc32c()(data[at + 21 : at + length])
                if stated != computed:
                    pair.counted = False
                    return
                codec: i64 = i64(read_i16_be(data, at + 21)) & 7
                base = read_i64_be(data, at)
                if codec > 4 or base < -MAX_OFFSET or base > MAX_OFFSET:
                    pair.counted = False
                    return
                codecs[CODECS[codec]] = None
                records: i64 = i64(read_i32_be(data, at + 57))
                if records > 0:
                    pair.records += records
                pair.batches += 1
                producer = read_i64_be(data, at + 43)
                if producer >= 0:
                    producers[producer] = None
                    epochs[i64(read_i16_be(data, at + 51))] = None
                at += length
        pair.codecs = tuple(codecs)
        if producers:
            pair.batch_producers = tuple(producers)
            pair.batch_epochs = tuple(epochs)


def without_pairs(items: list[Any]) -> list[Any]:
    """Return the exchanges that the general conversation read, and lines of request logs."""
    return [item for item in items if not isinstance(item, Pair)]


def perhaps_about(items: Sequence[Any], topic: str, topic_id: bytes) -> list[Any]:
    """Return the exchanges that may have records of a topic: Fetches, and what is no pair."""
    out: list[Any] = []
    for item in items:
        if isinstance(item, Pair):
            if item.plan.key != FETCH:
                continue
            ids, topics = item.facts.topic_ids, item.facts.topics
            if (ids is None or topic_id not in ids) and (topics is None or topic not in topics):
                continue
        out.append(item)
    return out


_crc: Any = None


def crc32c() -> Any:
    """Return what computes a CRC-32C; loaded when the first batch is there."""
    global _crc
    if _crc is None:
        import google_crc32c

        _crc = google_crc32c.value
    return _crc


def hold(
    side: Side, data: bytes, at: i64, end: i64, time_ns: i64, packet: i64, file: i64, place: i64
) -> None:
    """Keep the bytes [at, end) of a packet's after those that are held."""
    if end > at:
        here: i64 = place + at
        known = False
        if len(side.pieces) > 0:
            # The size of a frame is read alone.
            last = side.pieces[-1]
            known = i64(last[2]) == packet and i64(last[4]) + side.held - i64(last[0]) == here
        if not known:
            side.pieces.append((side.held, time_ns, packet, file, here))
        side.blocks.append(data if at == 0 and end == len(data) else data[at:end])
        side.held += end - at


def named(found: list[Partition] | None) -> tuple[Any, ...]:
    """Return partitions as (topic or its id, index)."""
    if found is None:
        return ()
    out: list[Any] = []
    for part in found:
        out.append(place_of(part))
    return tuple(out)


def place_of(part: Partition) -> tuple[Any, ...]:
    return (part.topic if part.topic is not None else part.topic_id, part.index)


def offsets_of(found: list[Partition] | None) -> dict[Any, i64]:
    """Return the fetch offsets of partitions, by (topic or its id, index)."""
    out: dict[Any, i64] = {}
    if found is not None:
        for part in found:
            out[place_of(part)] = part.offset
    return out


def unlisted(facts: Facts) -> list[Any]:
    """Return the partitions that a Fetch response has records of, and its request does not list."""
    out: list[Any] = []
    found = facts.told
    if found is not None:
        fetch_offsets: dict[Any, i64] | None = None
        for part in found:
            if part.size > 0:
                if fetch_offsets is None:
                    fetch_offsets = offsets_of(facts.asked)
                place = place_of(part)
                if place not in fetch_offsets:
                    out.append(place)
    return out


def bytes_before(data: bytes, at: i64, size: i64, offset: i64, wanted: i64, host: Any) -> i64:
    """Return the bytes of the batches that lie before an offset, counted up to `wanted`."""
    end = at + size
    begun = at
    found: i64 = 0
    while at < end and found < wanted:
        left = end - at
        if left < 17:
            break
        if data[at + 16] != 2:
            return i64(host.bytes_before(data[begun:end], offset, wanted))
        length: i64 = i64(read_i32_be(data, at + 8)) + 12
        if length < HEADER or length > left:
            break
        base = read_i64_be(data, at)
        if base < -MAX_OFFSET or base > MAX_OFFSET:
            return i64(host.bytes_before(data[begun:end], offset, wanted))
        if base + i64(read_i32_be(data, at + 23)) >= offset:
            break
        found += length
        at += length
    return found
