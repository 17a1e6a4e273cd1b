"""Everything seen so far, append-only: what rows need as columns, and where the bytes are.

Bodies are not kept: when somebody looks at an exchange, its bytes are read and decoded again.
Sans-I/O, apart from the `Read` function it is given.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

from analyzer.columns import Frames, Read, Table
from analyzer.dissection import dissect_request, dissect_response
from analyzer.model import Exchange, Note, Request, Response, State, Undecoded
from analyzer.rows import Row, row_of
from dissectors.errors import DissectError
from dissectors.registry import RequestHeader, read_request_header

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from analyzer.context import Context
    from analyzer.fetch_sessions import FetchSession
    from captures.model import Connection

STATES: Final[tuple[State, ...]] = ("answered", "open", "lost", "no-reply", "orphan", "opaque")
NONE: Final = -1
"""In a column of numbers: there is none. Correlation ids may be -1, so they have another."""
NO_ID: Final = -(2**40)
NO_ACKS: Final = -(2**20)

TABLE_COLUMNS: Final = (
    ("api", "apis"),
    ("client_id", "client_ids"),
    ("software", "softwares"),
    ("user", "users"),
    ("mechanism", "mechanisms"),
    ("reason", "reasons"),
    ("topics", "topic_lists"),
    ("groups", "group_lists"),
    ("errors", "error_lists"),
    ("tops", "top_lists"),
    ("implied", "implied_lists"),
    ("topic_ids", "topic_id_lists"),
    ("partitions", "partition_lists"),
    ("members", "member_lists"),
    ("generations", "generation_lists"),
    ("producer_ids", "producer_id_lists"),
    ("producer_epochs", "producer_epoch_lists"),
    ("txns", "txn_lists"),
    ("codecs", "codec_lists"),
)
"""Columns of numbers, and the tables that say what these stand for."""
ROW_COLUMNS: Final = (
    *("numbers", "times", "states", "connection", "client_side", "api_keys", "versions"),
    *("correlation_ids", "acks", "batches", "request_bytes", "response_bytes", "latencies"),
    *("waits", "throttles", "records", "_request", "_response"),
    *(column for column, _ in TABLE_COLUMNS),
)
"""All columns with one number a row."""

_NOTHING: Final[tuple[tuple[Undecoded, ...], tuple[Note, ...]]] = ((), ())


class Session:
    """Rows by index, in the order of completion; `index_of` finds them by number."""

    def __init__(self, context: Context, read: Read) -> None:
        self.context = context
        self._read = read
        self.numbers = array("Q")
        self.times = array("q")
        self.states = array("B")
        """Index in `STATES`."""
        self.connections: list[Connection] = []
        self.connection = array("I")
        """Index in `connections`."""
        self.client_side = array("B")
        self.api_keys = array("i")
        self.versions = array("i")
        self.correlation_ids = array("q")
        self.apis: Table[str] = Table()
        self.api = array("I")
        self.client_ids: Table[str | None] = Table()
        self.client_id = array("I")
        self.softwares: Table[str] = Table()
        self.software = array("I")
        self.users: Table[str] = Table()
        self.user = array("I")
        self.mechanisms: Table[str] = Table()
        self.mechanism = array("I")
        self.reasons: Table[str] = Table()
        self.reason = array("I")
        self.topic_lists: Table[tuple[str, ...]] = Table()
        self.topics = array("I")
        self.group_lists: Table[tuple[str, ...]] = Table()
        self.groups = array("I")
        self.error_lists: Table[tuple[int, ...]] = Table()
        self.errors = array("I")
        self.top_lists: Table[tuple[int, ...]] = Table()
        self.tops = array("I")
        """Errors of the response itself."""
        self.implied_lists: Table[tuple[str, ...]] = Table()
        self.implied = array("I")
        self.topic_id_lists: Table[tuple[bytes, ...]] = Table()
        self.topic_ids = array("I")
        self.partition_lists: Table[tuple[int, ...]] = Table()
        self.partitions = array("I")
        self.member_lists: Table[tuple[str, ...]] = Table()
        self.members = array("I")
        self.generation_lists: Table[tuple[int, ...]] = Table()
        self.generations = array("I")
        self.producer_id_lists: Table[tuple[int, ...]] = Table()
        self.producer_ids = array("I")
        self.producer_epoch_lists: Table[tuple[int, ...]] = Table()
        self.producer_epochs = array("I")
        self.txn_lists: Table[tuple[str, ...]] = Table()
        self.txns = array("I")
        self.codec_lists: Table[tuple[str, ...]] = Table()
        self.codecs = array("I")
        self.acks = array("i")
        """`NO_ACKS` where there are none: -1 means all replicas."""
        self.batches = array("i")
        self.request_bytes = array("q")
        self.response_bytes = array("q")
        self.latencies = array("q")
        self.waits = array("q")
        self.throttles = array("q")
        self.records = array("q")
        self._ids = bytearray()
        self._frames = Frames()
        self._request = array("q")
        self._response = array("q")
        self._remarks: dict[int, tuple[tuple[Undecoded, ...], tuple[Note, ...]]] = {}
        """Most exchanges have none."""
        self._fetch_sessions: dict[int, FetchSession] = {}
        """By index: what an incremental Fetch implies cannot be told from its bytes alone."""
        self._index = array("q")
        """By exchange number, from `_index_from` on; counts dropped rows, too."""
        self._index_from = 0
        self._late: dict[int, int] = {}
        """The same of exchanges that took so long that the others of their time are gone."""
        self._connection_index: dict[int, int] = {}
        self.dropped = 0
        """Rows that were here before the first one: see `drop`."""

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, exchange: Exchange, row: Row | None = None) -> int:
        """Take an exchange in; its index. `row` saves making it once more."""
        if row is None:
            row = row_of(exchange, self.context.names)
        index = len(self.numbers)
        self.numbers.append(exchange.number)
        self.times.append(row.time_ns)
        self.states.append(STATES.index(exchange.state))
        self.connection.append(self._connection(exchange.connection))
        self.client_side.append(0 if exchange.client == exchange.connection.a else 1)
        self.api_keys.append(_or_none(exchange.api_key))
        self.versions.append(_or_none(exchange.api_version))
        id_ = exchange.correlation_id
        self.correlation_ids.append(NO_ID if id_ is None else id_)
        self.api.append(self.apis.number(exchange.api))
        self.client_id.append(self.client_ids.number(exchange.client_id))
        self.software.append(self.softwares.number(exchange.software))
        self.user.append(self.users.number(exchange.user))
        self.mechanism.append(self.mechanisms.number(exchange.mechanism))
        self.reason.append(self.reasons.number(exchange.reason))
        self.topics.append(self.topic_lists.number(row.topics))
        self.groups.append(self.group_lists.number(row.groups))
        self.errors.append(self.error_lists.number(tuple(e.code for e in row.errors)))
        self.tops.append(self.top_lists.number(tuple(e.code for e in row.errors if e.top)))
        self.implied.append(self.implied_lists.number(row.implied_topics))
        self.topic_ids.append(self.topic_id_lists.number(row.topic_ids))
        self.partitions.append(self.partition_lists.number(row.partitions))
        self.members.append(self.member_lists.number(row.members))
        self.generations.append(self.generation_lists.number(row.generations))
        self.producer_ids.append(self.producer_id_lists.number(row.producer_ids))
        self.producer_epochs.append(self.producer_epoch_lists.number(row.producer_epochs))
        self.txns.append(self.txn_lists.number(row.transactional_ids))
        self.codecs.append(self.codec_lists.number(row.codecs))
        self.acks.append(NO_ACKS if row.acks is None else row.acks)
        self.batches.append(_or_none(row.batches))
        self.request_bytes.append(_or_none(row.request_bytes))
        self.response_bytes.append(_or_none(row.response_bytes))
        self.latencies.append(_or_none(row.latency_ns))
        self.waits.append(row.wait_ns)
        self.throttles.append(row.throttle_ms)
        self.records.append(_or_none(row.records))
        self._ids += bytes.fromhex(exchange.id)
        request, response = exchange.request, exchange.response
        self._request.append(NONE if request is None else self._frames.add(request.frame))
        self._response.append(NONE if response is None else self._frames.add(response.frame))
        if exchange.undecoded or exchange.notes:
            self._remarks[self.dropped + index] = (exchange.undecoded, exchange.notes)
        if exchange.fetch_session is not None:
            self._fetch_sessions[self.dropped + index] = exchange.fetch_session
        self._place(exchange.number, index)
        return index

    def _place(self, number: int, index: int) -> None:
        """Note where an exchange is, by its number."""
        at = number - self._index_from
        while len(self._index) <= at:
            self._index.append(NONE)
        if at >= 0:
            self._index[at] = self.dropped + index
        else:
            self._late[number] = self.dropped + index

    def drop(self, count: int) -> None:
        """Forget the oldest rows, and what of the tables only they have. Does the same to equal
        sessions, so that one may follow the other; connections stay."""
        count = min(count, len(self))
        if count <= 0:
            return
        for name in ROW_COLUMNS:
            del getattr(self, name)[:count]
        del self._ids[: 8 * count]
        for column, table in TABLE_COLUMNS:
            self._compact(column, table)
        self.dropped += count
        for remarks in (self._remarks, self._fetch_sessions):
            for key in [key for key in remarks if key < self.dropped]:
                del remarks[key]
        self._late = {n: index for n, index in self._late.items() if index >= self.dropped}
        kept = [n for column in (self._request, self._response) for n in column if n != NONE]
        self._frames.drop(min(kept, default=len(self._frames) + self._frames.dropped))
        first = min(self.numbers, default=len(self._index) + self._index_from)
        del self._index[: max(0, first - self._index_from)]
        self._index_from = max(self._index_from, first)

    def _compact(self, column: str, table: str) -> None:
        rows: array[int] = getattr(self, column)
        old: Table[Any] = getattr(self, table)
        new: Table[Any] = Table()
        numbers: dict[int, int] = {}
        for number in sorted(set(rows)):
            numbers[number] = new.number(old.values[number])
        setattr(self, table, new)
        setattr(self, column, array(rows.typecode, map(numbers.__getitem__, rows)))

    def ids(self, begin: int = 0, end: int | None = None) -> bytes:
        """Ids of rows begin..end, eight bytes each."""
        return bytes(self._ids[8 * begin : None if end is None else 8 * end])

    def _connection(self, connection: Connection) -> int:
        found = self._connection_index.get(connection.number)
        if found is None:
            found = self._connection_index[connection.number] = len(self.connections)
            self.connections.append(connection)
        return found

    def index_of(self, number: int) -> int | None:
        """The index of an exchange by its number."""
        at = number - self._index_from
        if at < 0:
            found = self._late.get(number, NONE)
        else:
            found = self._index[at] if at < len(self._index) else NONE
        if found == NONE:
            return None
        index = found - self.dropped
        return index if index >= 0 else None

    def exchange(self, index: int) -> Exchange:
        """An exchange with its bodies, decoded once more; `NotKept` when its bytes are gone."""
        connection = self.connections[self.connection[index]]
        client = self.client_side[index]
        ends = (connection.a, connection.b)
        key, version = self.api_keys[index], self.versions[index]
        id_ = self.correlation_ids[index]
        undecoded, notes = self._remarks.get(self.dropped + index, _NOTHING)
        header, request = self._request_of(index)
        return Exchange(
            number=self.numbers[index],
            id=self._ids[8 * index : 8 * index + 8].hex(),
            state=STATES[self.states[index]],
            connection=connection,
            client=ends[client],
            broker=ends[1 - client],
            api_key=None if key == NONE else key,
            api=self.apis.values[self.api[index]],
            api_version=None if version == NONE else version,
            correlation_id=None if id_ == NO_ID else id_,
            client_id=self.client_ids.values[self.client_id[index]],
            request=request,
            response=self._response_of(index, header),
            software=self.softwares.values[self.software[index]],
            user=self.users.values[self.user[index]],
            mechanism=self.mechanisms.values[self.mechanism[index]],
            reason=self.reasons.values[self.reason[index]],
            undecoded=undecoded,
            notes=notes,
            fetch_session=self._fetch_sessions.get(self.dropped + index),
        )

    def frames(self, index: int) -> tuple[int, ...]:
        """Packets with the first byte of request and response."""
        sides = (self._request[index], self._response[index])
        return tuple(self._frames.first_packet(side) for side in sides if side != NONE)

    def undecoded(self, index: int) -> tuple[Undecoded, ...]:
        """Bytes of it that could not be decoded."""
        return self._remarks.get(self.dropped + index, _NOTHING)[0]

    def remarked(self) -> Iterable[int]:
        """The indexes of exchanges with undecoded bytes or notes."""
        return [key - self.dropped for key in self._remarks]

    def first_packets(self, frames: NDArray[np.int64]) -> NDArray[np.int64]:
        """The packets with the first bytes of frames, by their numbers."""
        return self._frames.first_packets(frames)

    def row(self, index: int) -> Row:
        """The row of an exchange, with the topic names that are known by now."""
        return row_of(self.exchange(index), self.context.names)

    def _request_of(self, index: int) -> tuple[RequestHeader | None, Request | None]:
        number = self._request[index]
        if number == NONE:
            return None, None
        frame = self._frames.get(number, self._read)
        if self.api_keys[index] == NONE:
            return None, Request(frame, None, None)
        try:
            header = read_request_header(frame.payload)
        except DissectError:
            # It was there when the exchange was taken in: the file is another one by now.
            return None, Request(frame, None, None)
        return header, Request(frame, header, dissect_request(frame, header)[0])

    def _response_of(self, index: int, header: RequestHeader | None) -> Response | None:
        number = self._response[index]
        if number == NONE:
            return None
        frame = self._frames.get(number, self._read)
        id_ = self.correlation_ids[index]
        if header is None:
            return Response(frame, None if id_ == NO_ID else id_, None)
        return Response(frame, header.correlation_id, dissect_response(frame, header)[0])


def _or_none(value: int | None) -> int:
    return NONE if value is None else value
