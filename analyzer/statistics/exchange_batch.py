"""Exchanges of one connection, API, version and client as columns: what statistics take.

Most exchanges are answered soon and without an error. Those of one client that name the same topics
and groups differ in times, sizes and records alone, as far as most statistics look: the kernel
makes columns of them (`kernel.groups`). Any other exchange is a batch by itself, whose columns the
same code makes; who reads bodies takes the others one by one, too (`singles`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, TypeVar

from kafkascope.analyzer.bodies.contents import walk_of
from kafkascope.analyzer.exchanges.pairs import exchange_of
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.identity import ClientKey, client_key_of
from kafkascope.analyzer.model import Exchange
from kafkascope.dissectors.records.records import Batch
from kafkascope.kernel.groups import (
    ID_MARK,
    PairGroup,
    PartitionRows,
    Partitions,
    column,
    fetched,
    partitions_of,
    produced,
)
from kafkascope.kernel.pairs import Pair
from kafkascope.kernel.walker import Partition

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.pairs import Rows

Way: TypeAlias = Literal["produce", "fetch", "replica"]
"""Source of records: from a producer, to a consumer, or to a follower."""

PRODUCE: Final = 0
FETCH: Final = 1
SHARE_FETCH: Final = 78
CARRIERS: Final = frozenset({PRODUCE, FETCH, SHARE_FETCH})
"""APIs whose messages carry records."""
REPLICA: Final = re.compile(r"(?:broker-\d+-fetcher|ReplicaFetcherThread-\d+)-\d+", re.A)
"""Client ids of followers, for where a snaplen has cut the request that says so."""

Outcome: TypeAlias = tuple[str | None, int, int]
"""A topic, as a key (see `topic_key`), a partition, and the error of the response about it; 0:
none, or no response."""
Source: TypeAlias = "tuple[Row, Exchange] | Pair"

T = TypeVar("T")

SAME: Final = {
    PRODUCE: ("transactional_id",),
    FETCH: ("replica_id", "max_wait_ms", "isolation_level", "rack_id"),
}
"""Fields of requests that are the same in a batch of several: what `kernel.groups.key_of` ends
with. In batches of other APIs topics, partitions, groups, members and generations are."""


class PartitionColumns:
    """What exchanges sent to, or fetched from, one partition: a value for each exchange in most
    columns, and one for each record batch in `batches` and `counts`."""

    begins: Sequence[int]
    ends: Sequence[int]
    """Times of requests and of responses; of the request where no response was captured."""
    numbers: Sequence[int]
    indexes: Sequence[int]
    """Indexes of the exchanges in their batch."""
    at: Sequence[int]
    """Places among the partitions of the exchange."""
    fetch_offsets: Sequence[int | None]
    """Fetch offsets of requests, and within a session of earlier ones; None where none named the
    partition."""
    highs: Sequence[int]
    """High watermarks of Fetch responses, last stable offsets, and where the log begins; -1 where
    the response lacks it."""
    stables: Sequence[int]
    starts: Sequence[int]
    elsewhere: Sequence[bool]
    """A Fetch response names another broker to read from."""
    answered: Sequence[bool]
    """A response is about the partition."""
    base_offsets: Sequence[int | None]
    """That the broker gave to produced batches."""
    blobs: Sequence[bytes]
    """The records fields."""
    held: Sequence[int]
    """How many batches there are in each."""

    def __init__(self, found: PartitionRows, identify: Callable[[], Sequence[str]]) -> None:
        """`identify` returns the ids of all exchanges of the batch."""
        self._identify = identify
        self.__dict__.update(zip(_COLUMNS, zip(*found.rows, strict=True), strict=True))
        self.batches = list(map(_batch, found.batches))
        """As far as they can be read; the exchange has a note where that is not the end."""
        self.counts = found.counts
        """Records of each batch."""
        self.single = self.held == (1,) * len(self.batches)
        """Whether each has one batch, so that columns of both kinds are beside each other."""

    @property
    def ids(self) -> Sequence[str]:
        ids = self._identify()
        return [ids[index] for index in self.indexes]

    def by_batch(self, column: Sequence[T]) -> Sequence[T]:
        """Return a column of exchanges with one value for each of their batches."""
        if self.single:
            return column
        pairs = zip(column, self.held, strict=True)
        return [value for value, held in pairs for _ in range(held)]

    def by_exchange(self, column: Sequence[T]) -> Iterator[Sequence[T]]:
        """Return the values of a column of batches exchange by exchange."""
        if self.single:
            return zip(column, strict=True)
        ends = list(accumulate(self.held))
        return (column[end - held : end] for end, held in zip(ends, self.held, strict=True))

    @property
    def within(self) -> Sequence[int]:
        """Places of batches in their exchange."""
        return [place for held in self.held for place in range(held)]

    @property
    def before(self) -> Sequence[int]:
        """Records in the batches of the same exchange before each."""
        if self.single:
            return [0] * len(self.batches)
        found = self.by_exchange(self.counts)
        return [at for each in found if each for at in accumulate(each[:-1], initial=0)]

    def by_records(self) -> Iterator[tuple[int, int | None, bytes, Sequence[Batch], Sequence[int]]]:
        """Yield (number, base offset, records, batches, their counts) of each exchange."""
        batches, counts = self.by_exchange(self.batches), self.by_exchange(self.counts)
        return zip(*(self.numbers, self.base_offsets, self.blobs, batches, counts), strict=True)

    def sums(self, column: Sequence[int]) -> Sequence[int]:
        """Return the sum of a column of batches for each exchange."""
        return column if self.single else [sum(each) for each in self.by_exchange(column)]


_COLUMNS: Final = tuple(PartitionColumns.__annotations__)
"""In the order of `PartitionRows.rows`."""
# A `Batch` from a tuple without a Python frame.
_batch = partial(tuple.__new__, Batch)


def _column(field: int, of_row: Callable[[Row], Any]) -> Any:
    """Return the property of a column: `field` as `kernel.pairs.Pair.value` takes it, `of_row`
    where there are rows. Statistics read few of them."""

    def read(batch: ExchangeBatch) -> Sequence[Any]:
        pairs = batch._pairs
        if pairs is None:
            return [of_row(batch.row)]
        if type(batch._sources[0]) is not Pair:
            return [of_row(row) for row, _ in batch]
        return column(pairs, field)

    return cached_property(read)


def _end_of(row: Row) -> int:
    return row.time_ns + (row.latency_ns or 0)


class ExchangeBatch:
    """Exchanges of one connection, API, version and client. Of several, each was answered within a
    second, without an error or a note."""

    numbers: Sequence[int] = _column(0, attrgetter("number"))
    begins: Sequence[int] = _column(1, attrgetter("time_ns"))
    ends: Sequence[int] = _column(14, _end_of)
    """Times of requests and of responses; of the request where no response was captured."""
    latencies: Sequence[int] = _column(5, lambda row: row.latency_ns or 0)
    waits: Sequence[int] = _column(10, attrgetter("wait_ns"))
    servers: Sequence[int | None] = _column(6, attrgetter("server_ns"))
    request_transfers: Sequence[int | None] = _column(7, attrgetter("request_transfer_ns"))
    servings: Sequence[int | None] = _column(8, attrgetter("serving_ns"))
    response_transfers: Sequence[int | None] = _column(9, attrgetter("response_transfer_ns"))
    request_bytes: Sequence[int] = _column(3, lambda row: row.request_bytes or 0)
    response_bytes: Sequence[int] = _column(4, lambda row: row.response_bytes or 0)
    records: Sequence[int | None] = _column(11, attrgetter("records"))
    batches: Sequence[int | None] = _column(12, attrgetter("batches"))

    def __init__(
        self,
        sources: Sequence[Source],
        pairs: list[Pair] | None = None,
        request: Mapping[str, Any] | None = None,
        maker: Rows | None = None,
    ) -> None:
        """`sources`: what rows are made of, where that is pairs by `maker`; `request`: what is
        known by now of the fields of the request. Without `pairs` it is a single exchange."""
        self._sources, self._pairs, self._request, self._maker = sources, pairs, request, maker
        # Not a method: partitions and batch would refer to each other, and stay until a collection.
        self._identify = cache(partial(_ids, sources, maker))
        source = sources[0]
        self.row = self._row(source)
        """Row of the first one; of several only what all have in common may be read from it."""
        self.exchange = _exchange(source)
        self.api_key = self.row.api_key

    @classmethod
    def of(cls, row: Row, exchange: Exchange) -> Self:
        return cls([(row, exchange)])

    @classmethod
    def of_group(cls, group: PairGroup, key: tuple[Any, ...], maker: Rows | None) -> Self:
        """Return what the kernel has gathered; `key` is that of `kernel.groups.key_of`."""
        names = SAME.get(group.pairs[0].plan.key)
        request = None if names is None else dict(zip(names, key[-len(names) :], strict=True))
        return cls(group.sources, group.pairs, request, maker)

    @property
    def ids(self) -> Sequence[str]:
        return self._identify()

    @cached_property
    def codecs(self) -> Sequence[tuple[str, ...]]:
        return [self.row.codecs] if self._pairs is None else [each.codecs for each in self._pairs]

    @cached_property
    def first_ns(self) -> int:
        return min(self.begins)

    @cached_property
    def last_ns(self) -> int:
        return max(self.begins)

    def __len__(self) -> int:
        return len(self._sources)

    def __iter__(self) -> Iterator[tuple[Row, Exchange]]:
        for source in self._sources:
            yield self._row(source), _exchange(source)

    @cached_property
    def singles(self) -> list[ExchangeBatch]:
        """Each of several exchanges as a batch by itself, for who reads bodies."""
        return [ExchangeBatch.of(*each) for each in self]

    def row_of(self, number: int) -> Row:
        return self._row(self._by_number[number])

    def exchange_of(self, number: int) -> Exchange:
        return _exchange(self._by_number[number])

    @cached_property
    def _by_number(self) -> dict[int, Source]:
        return dict(zip(self.numbers, self._sources, strict=True))

    def _row(self, source: Source) -> Row:
        if type(source) is not Pair:
            return source[0]
        assert self._maker is not None
        return self._maker.row(source)

    @property
    def client(self) -> ClientKey:
        return client_key_of(self.row)

    @property
    def request(self) -> Mapping[str, Any]:
        """Fields of the request: of several exchanges those of `SAME`."""
        if self._request is None:
            self._request = self.exchange.request_body or {}
        return self._request

    @property
    def way(self) -> Way:
        if self.api_key == PRODUCE:
            return "produce"
        if not self.request and REPLICA.fullmatch(self.row.client_id or ""):
            return "replica"
        return "replica" if replica_id(self.request) >= 0 else "fetch"

    @cached_property
    def parts(self) -> dict[Outcome, PartitionColumns]:
        """Records of Produce, Fetch and ShareFetch."""
        found = self._partitions.parts.items()
        return {key: PartitionColumns(rows, self._identify) for key, rows in found}

    @cached_property
    def reads(self) -> Mapping[tuple[str | None, int], tuple[int, int | None]]:
        """What a line of a request log shows of a Fetch: offsets that it read from, by topic and
        partition, and those of the reader's next Fetch."""
        logged = self.exchange.logged
        if logged is None:
            return {}
        return {(_topic_key(topic), number): read for (topic, number), read in logged.reads.items()}

    @cached_property
    def record_sizes(self) -> Mapping[tuple[str | None, int], int]:
        """Bytes of records in a line of a request log, by topic and partition."""
        logged = self.exchange.logged
        if logged is None:
            return {}
        sizes = logged.record_sizes.items()
        return {(_topic_key(topic), number): size for (topic, number), size in sizes}

    @property
    def unanswered(self) -> dict[tuple[str | None, int], list[tuple[int, int | None, int]]]:
        """Fetched partitions that no response has: time, time of the response (None where it is
        missing), offset."""
        return self._partitions.unanswered

    @cached_property
    def _partitions(self) -> Partitions:
        found = Partitions()
        if self.api_key not in CARRIERS:
            return found
        if self._pairs is not None:
            return partitions_of(self._pairs)
        head = self.begins[0], self.ends[0], self.numbers[0], 0
        bodies, session = _bodies(self.exchange), self.exchange.fetch_session
        if self.api_key == PRODUCE:
            produced(found, head, *bodies, _walk)
        else:
            fetched(found, head, *bodies, _walk, None if session is None else session.offsets)
        return found


def _topic_key(topic: str | bytes) -> str | None:
    """Return the key of a topic as `kernel.groups.topic_of` does."""
    return (topic or None) if isinstance(topic, str) else ID_MARK + topic.hex()


def _exchange(source: Source) -> Exchange:
    return exchange_of(source) if type(source) is Pair else source[1]


def _ids(sources: Sequence[Source], maker: Rows | None) -> Sequence[str]:
    if maker is None:
        return [each[0].id for each in sources if type(each) is tuple]
    return [maker.lines.id(each) if type(each) is Pair else each[0].id for each in sources]


def _walk(blob: bytes) -> tuple[list[Batch], list[int]]:
    return walk_of(blob)[1:3] if blob else ([], [])


def _bodies(exchange: Exchange) -> tuple[list[Partition], list[Partition] | None, bytes]:
    """Return what the kernel reads of both bodies, and the records of all partitions."""
    request, response = exchange.request_body or {}, exchange.response_body
    returned, blobs = None, list[bytes]()
    if exchange.api_key == PRODUCE:
        requested = list(_partitions(request, "topic_data", "partition_data", blobs))
        if response is not None:
            returned = list(_partitions(response, "responses", "partition_responses", blobs))
    else:
        requested = list(_partitions(request, "topics", "partitions", blobs))
        if response is not None:
            returned = list(_partitions(response, "responses", "partitions", blobs))
            if not returned and response.get("error_code"):
                returned = None
    return requested, returned, b"".join(blobs)


def _partitions(
    body: Mapping[str, Any], topics: str, parts: str, blobs: list[bytes]
) -> Iterator[Partition]:
    """Yield the partitions of a body, whose records are added to `blobs`."""
    at = 0
    for topic in body.get(topics) or ():
        name = topic.get("name", topic.get("topic"))
        for each in topic[parts]:
            value_of = each.get
            index = value_of("index", value_of("partition_index", value_of("partition")))
            part = Partition(name, topic.get("topic_id"), index)
            part.error, part.high = value_of("error_code", 0), value_of("high_watermark", -1)
            part.stable = value_of("last_stable_offset", -1)
            part.start = value_of("log_start_offset", -1)
            part.elsewhere = value_of("preferred_read_replica", -1) >= 0
            part.offset = value_of("fetch_offset", value_of("base_offset", -1))
            if blob := value_of("records"):
                part.at, part.size = at, len(blob)
                at += len(blob)
                blobs.append(blob)
            yield part


def replica_id(request: Mapping[str, Any]) -> int:
    """Return the id of the follower that a Fetch is of; -1 for a consumer."""
    state = request.get("replica_state")
    found = state if isinstance(state, dict) else request
    return int(found.get("replica_id", -1))
