"""Everything seen so far, append-only: what rows need as columns, and where the bytes are.

Bodies are not kept: when somebody looks at an exchange, its bytes are read and decoded again.
Sans-I/O, apart from the `Read` function it is given.
"""

from __future__ import annotations

from array import array
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.bodies.dissection import (
    cut_of,
    dissect_request,
    dissect_response,
    header_of_cut,
)
from kafkascope.analyzer.exchanges.columns import Frames, Kept, Read, Table
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.model import Exchange, Frame, Note, Request, Response, Undecoded
from kafkascope.analyzer.session.packing import (
    NO_ID,
    NONE,
    ROW_COLUMNS,
    STATES,
    TABLE_COLUMNS,
    pack_bodies,
    pack_heads,
)
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.registry import RequestHeader, read_request_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kafkascope.analyzer.bodies.fetch_sessions import FetchSession
    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.exchanges.offline import Capture
    from kafkascope.captures.model import Connection

_NOTHING: Final[tuple[tuple[Undecoded, ...], tuple[Note, ...]]] = ((), ())


class Session:
    """Rows by index, in the order of completion; `index_of` finds them by number."""

    def __init__(self, context: Context, read: Read, places: Kept | None = None) -> None:
        """`places` keeps where the bytes of frames are; in memory without it."""
        self.context = context
        self._read = read
        self.numbers = array("b")
        self.times = array("b")
        self.states = array("b")
        """Index in `STATES`."""
        self.connections: list[Connection] = []
        self.connection = array("b")
        """Index in `connections`."""
        self.client_side = array("b")
        self.api_keys = array("b")
        self.versions = array("b")
        self.correlation_ids = array("b")
        self.apis: Table[str] = Table()
        self.api = array("b")
        self.client_ids: Table[str | None] = Table()
        self.client_id = array("b")
        self.softwares: Table[str] = Table()
        self.software = array("b")
        self.users: Table[str] = Table()
        self.user = array("b")
        self.mechanisms: Table[str] = Table()
        self.mechanism = array("b")
        self.reasons: Table[str] = Table()
        self.reason = array("b")
        self.topic_lists: Table[tuple[str, ...]] = Table()
        self.topics = array("b")
        self.group_lists: Table[tuple[str, ...]] = Table()
        self.groups = array("b")
        self.error_lists: Table[tuple[int, ...]] = Table()
        self.errors = array("b")
        self.top_lists: Table[tuple[int, ...]] = Table()
        self.tops = array("b")
        """Errors of the response itself."""
        self.implied_lists: Table[tuple[str, ...]] = Table()
        self.implied = array("b")
        self.topic_id_lists: Table[tuple[bytes, ...]] = Table()
        self.topic_ids = array("b")
        self.partition_lists: Table[tuple[int, ...]] = Table()
        self.partitions = array("b")
        self.member_lists: Table[tuple[str, ...]] = Table()
        self.members = array("b")
        self.generation_lists: Table[tuple[int, ...]] = Table()
        self.generations = array("b")
        self.producer_id_lists: Table[tuple[int, ...]] = Table()
        self.producer_ids = array("b")
        self.producer_epoch_lists: Table[tuple[int, ...]] = Table()
        self.producer_epochs = array("b")
        self.txn_lists: Table[tuple[str, ...]] = Table()
        self.txns = array("b")
        self.codec_lists: Table[tuple[str, ...]] = Table()
        self.codecs = array("b")
        self.acks = array("b")
        """`NO_ACKS` where there are none: -1 means all replicas."""
        self.batches = array("b")
        self.request_bytes = array("b")
        self.response_bytes = array("b")
        self.latencies = array("b")
        self.waits = array("b")
        self.throttles = array("b")
        self.records = array("b")
        self._ids = bytearray()
        self._frames = Frames(places)
        self._places = array("b")
        """Addresses in `_frames`."""
        self.request_packets = array("b")
        """Packets with the first byte; `NONE` where there is no such frame."""
        self.response_packets = array("b")
        self._remarks: dict[int, tuple[tuple[Undecoded, ...], tuple[Note, ...]]] = {}
        """Most exchanges have none."""
        self._hints: dict[int, tuple[tuple[Undecoded, ...], tuple[Note, ...]]] = {}
        """The same as far as headers tell, for rows whose bodies were not read yet."""
        self.rows_told = 0
        """Rows that came, those that went again included."""
        self.rows_filled = 0
        """The same of rows whose bodies were read."""
        self._fetch_sessions: dict[int, FetchSession] = {}
        """By index: what an incremental Fetch implies cannot be told from its bytes alone."""
        self._ended: dict[int, int] = {}
        """By index: when the connections of requests without an answer ended."""
        self._index = array("q")
        """By exchange number, from `_index_from` on; counts dropped rows, too."""
        self._index_from = 0
        self._late: dict[int, int] = {}
        """The same of exchanges that took so long that the others of their time are gone."""
        self._indexed = 0
        """Rows that it knows, those that went again included."""
        self._connection_index: dict[int, int] = {}
        self.dropped = 0
        """Rows that were here before the first one: see `drop`."""

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def filled(self) -> int:
        """Rows whose bodies were read, from the first on: the columns of bodies are as long."""
        return len(self.errors)

    def add(self, exchange: Exchange, row: Row | None = None) -> int:
        """Take an exchange in; its index. `row` saves making it once more."""
        if row is None:
            row = row_of(exchange, self.context.names)
        self.extend([exchange], [row])
        self.fill([exchange], [row])
        return len(self.numbers) - 1

    def extend(self, exchanges: Sequence[Exchange], rows: Sequence[Row] = ()) -> None:
        """Take exchanges in as far as their headers tell; `fill` has to follow."""
        pack_heads(self, exchanges, rows)
        for key, exchange in enumerate(exchanges, self.rows_told):
            if exchange.undecoded or exchange.notes:
                self._hints[key] = (exchange.undecoded, exchange.notes)
            if exchange.ended_ns is not None:
                self._ended[key] = exchange.ended_ns
        self.rows_told += len(exchanges)

    def fill(self, exchanges: Sequence[Exchange], rows: Sequence[Row]) -> None:
        """What the bodies of the next exchanges tell that were taken in without."""
        pack_bodies(self, rows)
        for key, exchange in enumerate(exchanges, self.rows_filled):
            if exchange.undecoded or exchange.notes:
                self._remarks[key] = (exchange.undecoded, exchange.notes)
            if exchange.fetch_session is not None:
                self._fetch_sessions[key] = exchange.fetch_session
        self.rows_filled += len(exchanges)

    def _index_rows(self) -> None:
        """Note where the rows are that came since, by the numbers of exchanges."""
        index, begin = self._index, self._indexed - self.dropped
        for row, number in enumerate(self.numbers[begin:], self._indexed):
            at = number - self._index_from
            if at < 0:
                self._late[number] = row
                continue
            if at >= len(index):
                index.extend([NONE] * (at + 1 - len(index)))
            index[at] = row
        self._indexed = self.dropped + len(self.numbers)

    def drop(self, count: int) -> None:
        """Forget the oldest rows, and what of the tables and connections only they have. Does the
        same to equal sessions, so that one may follow the other."""
        count = min(count, len(self))
        if count <= 0:
            return
        self._index_rows()
        for name in ROW_COLUMNS:
            del getattr(self, name)[:count]
        del self._ids[: 8 * count]
        for column, table in TABLE_COLUMNS:
            self._compact(column, table)
        self._compact_connections()
        self.dropped += count
        for remarks in (self._remarks, self._hints, self._fetch_sessions, self._ended):
            for key in [key for key in remarks if key < self.dropped]:
                del remarks[key]
        self._late = {n: index for n, index in self._late.items() if index >= self.dropped}
        self._frames.release(self._places[0] if self._places else self._frames.end)
        first = min(self.numbers, default=len(self._index) + self._index_from)
        del self._index[: max(0, first - self._index_from)]
        self._index_from = max(self._index_from, first)

    def forget(self) -> None:
        """Let go of the rows and frames, but not of what tables and numbers mean: for whoever hands
        them over at once."""
        for name in ROW_COLUMNS:
            del getattr(self, name)[:]
        self._ids.clear()
        for remarks in (self._remarks, self._hints, self._fetch_sessions, self._ended):
            remarks.clear()
        self._frames.release(self._frames.end)

    def _compact(self, column: str, table: str) -> None:
        rows: array[int] = getattr(self, column)
        old: Table[Any] = getattr(self, table)
        new: Table[Any] = Table()
        numbers: dict[int, int] = {}
        for number in sorted(set(rows)):
            numbers[number] = new.number(old.values[number])
        setattr(self, table, new)
        setattr(self, column, array(rows.typecode, map(numbers.__getitem__, rows)))

    def _compact_connections(self) -> None:
        used = sorted(set(self.connection))
        new = {old: index for index, old in enumerate(used)}
        self.connections = [self.connections[old] for old in used]
        self.connection = array(self.connection.typecode, map(new.__getitem__, self.connection))
        self._connection_index = {
            connection.number: index for index, connection in enumerate(self.connections)
        }

    def ids(self, begin: int = 0, end: int | None = None) -> bytes:
        """Ids of rows begin..end, eight bytes each."""
        return bytes(self._ids[8 * begin : None if end is None else 8 * end])

    def connection_number(self, connection: Connection) -> int:
        """Its index in `connections`."""
        found = self._connection_index.get(connection.number)
        if found is None:
            found = self._connection_index[connection.number] = len(self.connections)
            self.connections.append(connection)
        return found

    def index_of(self, number: int) -> int | None:
        """The index of an exchange by its number."""
        if self._indexed < self.dropped + len(self.numbers):
            self._index_rows()
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
        undecoded, notes = self._remarked(index)
        asking, answering = self._frames_of(index)
        header, request, left = self._request_of(index, asking)
        response, more = self._response_of(index, answering, header)
        if index >= self.filled:
            undecoded = undecoded or left + more
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
            response=response,
            software=self.softwares.values[self.software[index]],
            user=self.users.values[self.user[index]],
            mechanism=self.mechanisms.values[self.mechanism[index]],
            reason=self.reasons.values[self.reason[index]],
            undecoded=undecoded,
            notes=notes,
            fetch_session=self._fetch_sessions.get(self.dropped + index),
            ended_ns=self._ended.get(self.dropped + index),
            wait_ns=self.waits[index] if index < self.filled else 0,
        )

    def frames(self, index: int) -> tuple[int, ...]:
        """Packets with the first byte of request and response."""
        both = (self.request_packets[index], self.response_packets[index])
        return tuple([packet for packet in both if packet != NONE])

    def undecoded(self, index: int) -> tuple[Undecoded, ...]:
        """Bytes of it that could not be decoded."""
        return self._remarked(index)[0]

    def _remarked(self, index: int) -> tuple[tuple[Undecoded, ...], tuple[Note, ...]]:
        key = self.dropped + index
        known = self._remarks if index < self.filled else self._hints
        return known.get(key, _NOTHING)

    def remarked(self) -> Iterable[int]:
        """The indexes of exchanges with undecoded bytes or notes."""
        return [key - self.dropped for key in self._remarks]

    def row(self, index: int) -> Row:
        """The row of an exchange, with the topic names that are known by now."""
        return row_of(self.exchange(index), self.context.names)

    def _frames_of(self, index: int) -> tuple[Frame | None, Frame | None]:
        """Request and response with their bytes, as far as there are any."""
        asked = self.request_packets[index] != NONE
        answered = self.response_packets[index] != NONE
        found = self._frames.get(self._places, index, asked + answered, self._read)
        return (found[0] if asked else None), (found[-1] if answered else None)

    def _request_of(
        self, index: int, frame: Frame | None
    ) -> tuple[RequestHeader | None, Request | None, tuple[Undecoded, ...]]:
        if frame is None:
            return None, None, ()
        if self.api_keys[index] == NONE:
            return None, Request(frame, None, None), ()
        try:
            header = read_request_header(frame.payload)
        except DissectError:
            # Else it was there when the exchange was taken in: the file is another one by now.
            head = header_of_cut(frame.payload, None) if frame.cut else None
            return head, Request(frame, head, None), cut_of(frame, "request")
        decoded, left = dissect_request(frame, header)
        return header, Request(frame, header, decoded), left

    def _response_of(
        self, index: int, frame: Frame | None, header: RequestHeader | None
    ) -> tuple[Response | None, tuple[Undecoded, ...]]:
        if frame is None:
            return None, ()
        id_ = self.correlation_ids[index]
        if header is None:
            return Response(frame, None if id_ == NO_ID else id_, None), ()
        decoded, left = dissect_response(frame, header)
        return Response(frame, header.correlation_id, decoded), left


TOGETHER: Final = 64
"""Exchanges that go into the columns of a session together."""


def session_of(capture: Capture) -> Session:
    """All exchanges of a capture as columns. Bodies are read and decoded again when they are looked
    at, so the input has to stay open; what cannot be read twice needs a spool."""
    session = Session(capture.context, capture.source.read)
    exchanges, names = capture.exchanges(), capture.context.names
    while some := list(islice(exchanges, TOGETHER)):
        rows = [row_of(exchange, names) for exchange in some]
        session.extend(some, rows)
        session.fill(some, rows)
    return session
