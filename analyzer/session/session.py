"""All exchanges read so far, append-only: the values of rows as columns, and the places of the
bytes.

Bodies are not kept: when an exchange is displayed, its bytes are read and decoded again. Sans-I/O,
apart from the `Read` function that it is given.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.bodies.dissection import dissect_request, dissect_response, header_of_cut
from kafkascope.analyzer.exchanges.column import NONE
from kafkascope.analyzer.exchanges.columns import Frames, Kept, Read, ValueList
from kafkascope.analyzer.exchanges.pairs import exchange_of
from kafkascope.analyzer.exchanges.rows import BROKER_COLUMNS, NO_ID, SOURCES, Row, row_of
from kafkascope.analyzer.exchanges.stages import COLUMNS as STAGES
from kafkascope.analyzer.model import (
    STATES,
    Exchange,
    Frame,
    Logged,
    Note,
    Request,
    Response,
    Stages,
    Undecoded,
)
from kafkascope.analyzer.requestlog.model import BrokerTimes
from kafkascope.analyzer.session.packing import COLUMNS, TABLES, Packer
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.keyed import read_header
from kafkascope.dissectors.registry import RequestHeader
from kafkascope.dissectors.zookeeper.types import is_zookeeper
from kafkascope.kernel.pairs import Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kafkascope.analyzer.bodies.fetch_sessions import FetchSession
    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.exchanges.pairs import Item
    from kafkascope.captures.model import Connection

_NOTHING: Final[tuple[tuple[Undecoded, ...], tuple[Note, ...]]] = ((), ())


GROWING: Final = (
    *("connections", "id_bytes", "stored_frames"),
    *("remarks_by_row", "fetch_sessions", "ended_by_row"),
)
"""Attributes of a session that grow with its rows, besides columns and tables."""


class Session:
    """Rows by index, in the order in which they came; `index_of` finds them by number."""

    def __init__(
        self,
        context: Context,
        read: Read,
        places: Kept | None = None,
        plaintext: Callable[[], Kept] | None = None,
    ) -> None:
        """`places` stores where the bytes of frames are, and what `plaintext` makes those that came
        out of TLS; None for memory."""
        self.context = context
        self._read = read
        self.columns: dict[str, array[int]] = {name: array("b") for name in COLUMNS}
        """One number per row; for `TABLES` the index of its value in the table of that name."""
        self.tables: dict[str, ValueList[Any]] = {name: ValueList() for name in TABLES}
        self.connections: list[Connection] = []
        self.id_bytes = bytearray()
        """Ids of exchanges, eight bytes each."""
        self.stored_frames = Frames(places, plaintext=plaintext)
        self.remarks_by_row: dict[int, tuple[tuple[Undecoded, ...], tuple[Note, ...]]] = {}
        """Undecoded bytes and notes by row, dropped rows counted; most exchanges have none."""
        self.rows_appended = 0
        """Number of rows added, dropped ones included."""
        self.fetch_sessions: dict[int, FetchSession] = {}
        """By row, dropped rows counted: the bytes of an incremental Fetch alone do not tell what it
        implies."""
        self.ended_by_row: dict[int, int] = {}
        """By row, dropped rows counted: when the connections of requests without a response
        ended."""
        self._index = array("q")
        """Rows by exchange number, from `_index_from` on; dropped rows are counted."""
        self._index_from = 0
        self._late: dict[int, int] = {}
        """The same for exchanges so slow that the rows of their neighbours in number were
        dropped."""
        self._indexed = 0
        """Number of rows in the index, dropped ones included."""
        self._connection_index: dict[int, int] = {}
        self.dropped = 0
        """Number of rows dropped before the first one: see `drop`."""
        self._packer: Packer | None = None

    def __len__(self) -> int:
        return len(self.columns["number"])

    def add(self, exchange: Item) -> int:
        self.extend([exchange])
        return len(self.columns["number"]) - 1

    def extend(self, items: Sequence[Item]) -> list[str]:
        """Add exchanges; return their last columns in the list (`exchanges.outcome.result`)."""
        if self._packer is None:
            parts = self.columns, self.tables, self.stored_frames, self.connection_number
            self._packer = Packer(self.context, *parts)
        known = [item if type(item) is Pair else exchange_of(item) for item in items]
        ids, texts = self._packer.add(known)
        self.id_bytes += bytes.fromhex("".join(ids))
        for key, item in enumerate(known, self.rows_appended):
            if type(item) is Pair:
                if item.session is not None:
                    self.fetch_sessions[key] = item.session
                continue
            if item.undecoded or item.notes:
                self.remarks_by_row[key] = (item.undecoded, item.notes)
            if item.fetch_session is not None:
                self.fetch_sessions[key] = item.fetch_session
            if item.ended_ns is not None:
                self.ended_by_row[key] = item.ended_ns
        self.rows_appended += len(items)
        return texts

    def index_rows(self) -> None:
        index, begin = self._index, self._indexed - self.dropped
        for row, number in enumerate(self.columns["number"][begin:], self._indexed):
            at = number - self._index_from
            if at < 0:
                self._late[number] = row
                continue
            if at >= len(index):
                index.extend([NONE] * (at + 1 - len(index)))
            index[at] = row
        self._indexed = self.dropped + len(self.columns["number"])

    def drop(self, count: int) -> None:
        """Forget the oldest rows, and the values of tables and the connections that only they use.
        Equal sessions stay equal, so that one can follow the other."""
        count = min(count, len(self))
        if count <= 0:
            return
        self.index_rows()
        for column in self.columns.values():
            del column[:count]
        del self.id_bytes[: 8 * count]
        self._packer = None
        for name in TABLES:
            self._compact(name)
        self._compact_connections()
        self.dropped += count
        for remarks in (self.remarks_by_row, self.fetch_sessions, self.ended_by_row):
            for key in [key for key in remarks if key < self.dropped]:
                del remarks[key]
        self._late = {n: index for n, index in self._late.items() if index >= self.dropped}
        self.stored_frames.release(
            self.columns["place"][0] if self.columns["place"] else self.stored_frames.end
        )
        first = min(self.columns["number"], default=len(self._index) + self._index_from)
        del self._index[: max(0, first - self._index_from)]
        self._index_from = max(self._index_from, first)

    def forget(self) -> None:
        """Forget rows and frames, but keep the meaning of tables and numbers: for a process that
        passes rows on at once."""
        for column in self.columns.values():
            del column[:]
        self.id_bytes.clear()
        for remarks in (self.remarks_by_row, self.fetch_sessions, self.ended_by_row):
            remarks.clear()
        self.stored_frames.release(self.stored_frames.end)

    def _compact(self, name: str) -> None:
        rows, old = self.columns[name], self.tables[name]
        new: ValueList[Any] = ValueList()
        numbers: dict[int, int] = {}
        for number in sorted(set(rows)):
            numbers[number] = new.number(old.values[number])
        self.tables[name] = new
        self.columns[name] = array(rows.typecode, map(numbers.__getitem__, rows))

    def _compact_connections(self) -> None:
        column = self.columns["connection"]
        used = sorted(set(column))
        new = {old: index for index, old in enumerate(used)}
        self.connections = [self.connections[old] for old in used]
        self.columns["connection"] = array(column.typecode, map(new.__getitem__, column))
        self._connection_index = {
            connection.number: index for index, connection in enumerate(self.connections)
        }

    def value(self, name: str, index: int) -> Any:
        return self.tables[name].values[self.columns[name][index]]

    def ids(self, begin: int = 0, end: int | None = None) -> bytes:
        """Return the ids of rows begin..end, eight bytes each."""
        return bytes(self.id_bytes[8 * begin : None if end is None else 8 * end])

    def connection_number(self, connection: Connection) -> int:
        """Return the index of a connection in `connections`; adds new ones."""
        found = self._connection_index.get(connection.number)
        if found is None:
            found = self._connection_index[connection.number] = len(self.connections)
            self.connections.append(connection)
        return found

    def index_of(self, number: int) -> int | None:
        if self._indexed < self.dropped + len(self.columns["number"]):
            self.index_rows()
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
        """Return an exchange with its bodies, decoded again; `NotKept` when its bytes are gone."""
        columns, value = self.columns, self.value
        connection = self.connections[columns["connection"][index]]
        client = columns["client_side"][index]
        ends = connection.ends(client)
        key, version = columns["api_key"][index], columns["api_version"][index]
        id_ = columns["correlation_id"][index]
        undecoded, notes = self.remarks(index)
        asking, answering = self._frames_of(index)
        header, request = self._request_of(index, asking)
        response = self._response_of(index, answering, header)
        return Exchange(
            number=columns["number"][index],
            id=self.id_bytes[8 * index : 8 * index + 8].hex(),
            state=STATES[columns["state"][index]],
            connection=connection,
            client=ends[0],
            broker=ends[1],
            api_key=None if key == NONE else key,
            api=value("api", index),
            api_version=None if version == NONE else version,
            correlation_id=None if id_ == NO_ID else id_,
            client_id=value("client_id", index),
            request=request,
            response=response,
            software=value("software", index),
            user=value("user", index),
            mechanism=value("mechanism", index),
            reason=value("reason", index),
            undecoded=undecoded,
            notes=notes,
            fetch_session=self.fetch_sessions.get(self.dropped + index),
            ended_ns=self.ended_by_row.get(self.dropped + index),
            wait_ns=columns["wait_ns"][index],
            tls=value("tls", index),
            zookeeper=value("zookeeper", index),
            stages=self._stages(index),
            logged=self._logged(index),
        )

    def _logged(self, index: int) -> Logged | None:
        """Return what a request log said; what it has of records, and its gaps, is not stored."""
        queue, local, remote, sending, send = (self._stored(name, index) for name in BROKER_COLUMNS)
        listener = self.value("listener", index)
        source = self.value("source", index)
        if source == SOURCES[0] and not listener and local is None:
            return None
        times = BrokerTimes(queue, local, remote, sending, send, None)
        forwarded, packets = self.value("forwarded", index), source == SOURCES[0]
        total_ns = self.columns["latency_ns"][index]
        counterpart = self.value("counterpart", index)
        more = {"deprecated": False, "record_sizes": {}, "packets": packets}
        more["counterpart"] = counterpart
        return Logged(index, total_ns, times, listener, forwarded, **more)

    def _stored(self, name: str, index: int) -> Any:
        value = self.value(name, index) if name in self.tables else self.columns[name][index]
        return None if value == NONE else value

    def _stages(self, index: int) -> Stages:
        return Stages(*[self._stored(name, index) for name in STAGES])

    def frames(self, index: int) -> tuple[int, ...]:
        both = (self.columns["request_packet"][index], self.columns["response_packet"][index])
        return tuple([packet for packet in both if packet != NONE])

    def remarks(self, index: int) -> tuple[tuple[Undecoded, ...], tuple[Note, ...]]:
        """Return the bytes of an exchange that could not be decoded, and notes about it."""
        return self.remarks_by_row.get(self.dropped + index, _NOTHING)

    def remarked(self) -> Iterable[int]:
        return [key - self.dropped for key in self.remarks_by_row]

    def row(self, index: int) -> Row:
        """Return the row of an exchange, with the topic names known so far."""
        return row_of(self.exchange(index), self.context.names)

    def _frames_of(self, index: int) -> tuple[Frame | None, Frame | None]:
        sent = self.columns["request_packet"][index] != NONE
        answered = self.columns["response_packet"][index] != NONE
        found = self.stored_frames.get(self.columns["place"], index, sent + answered, self._read)
        return (found[0] if sent else None), (found[-1] if answered else None)

    def _request_of(
        self, index: int, frame: Frame | None
    ) -> tuple[RequestHeader | None, Request | None]:
        if frame is None:
            return None, None
        key = self.columns["api_key"][index]
        if key == NONE:
            return None, Request(frame, None, None)
        try:
            header = read_header(frame.payload, key)
        except DissectError:
            # If not cut, the header was readable when the exchange was added: the file has changed.
            head = header_of_cut(frame.payload, None) if frame.cut else None
            return head, Request(frame, head, None)
        return header, Request(frame, header, dissect_request(frame, header)[0])

    def _response_of(
        self, index: int, frame: Frame | None, header: RequestHeader | None
    ) -> Response | None:
        if frame is None:
            return None
        id_, key = self.columns["correlation_id"][index], self.columns["api_key"][index]
        if header is None and is_zookeeper(key):
            header = read_header(b"", key)
        if header is None:
            return Response(frame, None if id_ == NO_ID else id_, None)
        return Response(frame, header.correlation_id, dissect_response(frame, header)[0])
