"""Rows of a session for filters: from its columns, with the message read again only for what these
do not hold."""

# ruff: noqa: D102  the properties are those of `Row`, where they are told
from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from kafkascope.analyzer.exchanges.rows import RowError, is_flexible, late_names, row_of
from kafkascope.analyzer.model import State, Undecoded
from kafkascope.analyzer.session.packing import NO_ACKS, NO_ID, NONE, STATES
from kafkascope.dissectors.reference.codes import error_name

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.session.session import Session


class ColumnRow:
    """Stands for the `Row` of an exchange; any attribute that no column has reads the message."""

    def __init__(self, session: Session, index: int) -> None:
        self._session = session
        self._index = index
        self._early = index >= session.filled
        """Its bodies were not read for the columns yet."""

    @cached_property
    def exchange(self) -> Exchange:
        """The whole exchange, read again; `captures.NotKept` when its bytes are gone."""
        return self._session.exchange(self._index)

    @cached_property
    def _row(self) -> Row:
        return row_of(self.exchange, self._session.context.names)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._row, name)

    def _number(self, name: str) -> int | None:
        value: int = getattr(self._session, name)[self._index]
        return None if value == NONE else value

    @property
    def number(self) -> int:
        return self._session.numbers[self._index]

    @property
    def time_ns(self) -> int:
        return self._session.times[self._index]

    @property
    def state(self) -> State:
        return STATES[self._session.states[self._index]]

    @property
    def connection(self) -> int:
        number: int = self._connection.number
        return number

    @cached_property
    def _connection(self) -> Any:
        return self._session.connections[self._session.connection[self._index]]

    @property
    def client_address(self) -> str:
        connection = self._connection
        return str(connection.b if self._session.client_side[self._index] else connection.a)

    @property
    def broker_address(self) -> str:
        connection = self._connection
        return str(connection.a if self._session.client_side[self._index] else connection.b)

    @property
    def api_key(self) -> int | None:
        return self._number("api_keys")

    @property
    def api(self) -> str:
        return self._session.apis.values[self._session.api[self._index]]

    @property
    def api_version(self) -> int | None:
        return self._number("versions")

    @property
    def correlation_id(self) -> int | None:
        value = self._session.correlation_ids[self._index]
        return None if value == NO_ID else value

    @property
    def client_id(self) -> str | None:
        return self._session.client_ids.values[self._session.client_id[self._index]]

    @property
    def software(self) -> str:
        return self._session.softwares.values[self._session.software[self._index]]

    @property
    def user(self) -> str:
        return self._session.users.values[self._session.user[self._index]]

    @property
    def topics(self) -> tuple[str, ...]:
        if self._early:
            return self._row.topics
        known = self._session.topic_lists.values[self._session.topics[self._index]]
        # An id without a name then; by now it may have one.
        return late_names(known, self._session.context.names)

    @property
    def implied_topics(self) -> tuple[str, ...]:
        if self._early:
            return self._row.implied_topics
        known = self._session.implied_lists.values[self._session.implied[self._index]]
        return late_names(known, self._session.context.names)

    @property
    def topic_ids(self) -> tuple[bytes, ...]:
        if self._early:
            return self._row.topic_ids
        return self._session.topic_id_lists.values[self._session.topic_ids[self._index]]

    @property
    def partitions(self) -> tuple[int, ...]:
        if self._early:
            return self._row.partitions
        return self._session.partition_lists.values[self._session.partitions[self._index]]

    @property
    def members(self) -> tuple[str, ...]:
        if self._early:
            return self._row.members
        return self._session.member_lists.values[self._session.members[self._index]]

    @property
    def generations(self) -> tuple[int, ...]:
        if self._early:
            return self._row.generations
        return self._session.generation_lists.values[self._session.generations[self._index]]

    @property
    def producer_ids(self) -> tuple[int, ...]:
        if self._early:
            return self._row.producer_ids
        return self._session.producer_id_lists.values[self._session.producer_ids[self._index]]

    @property
    def producer_epochs(self) -> tuple[int, ...]:
        if self._early:
            return self._row.producer_epochs
        session = self._session
        return session.producer_epoch_lists.values[session.producer_epochs[self._index]]

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        if self._early:
            return self._row.transactional_ids
        return self._session.txn_lists.values[self._session.txns[self._index]]

    @property
    def codecs(self) -> tuple[str, ...]:
        if self._early:
            return self._row.codecs
        return self._session.codec_lists.values[self._session.codecs[self._index]]

    @property
    def acks(self) -> int | None:
        if self._early:
            return self._row.acks
        value = self._session.acks[self._index]
        return None if value == NO_ACKS else value

    @property
    def batches(self) -> int | None:
        if self._early:
            return self._row.batches
        return self._number("batches")

    @property
    def flexible(self) -> bool:
        return is_flexible(self.api_key, self.api_version)

    @property
    def frames(self) -> tuple[int, ...]:
        return self._session.frames(self._index)

    @property
    def undecoded(self) -> tuple[Undecoded, ...]:
        return self._session.undecoded(self._index)

    @property
    def groups(self) -> tuple[str, ...]:
        if self._early:
            return self._row.groups
        return self._session.group_lists.values[self._session.groups[self._index]]

    @property
    def errors(self) -> tuple[RowError, ...]:
        """Codes and names; what they are about is in the message."""
        if self._early:
            return self._row.errors
        session = self._session
        codes = session.error_lists.values[session.errors[self._index]]
        top = session.top_lists.values[session.tops[self._index]]
        if not top:
            return tuple(RowError(code, error_name(code)) for code in codes)
        return tuple(RowError(code, error_name(code), top=code in top) for code in codes)

    @property
    def request_bytes(self) -> int | None:
        return self._number("request_bytes")

    @property
    def response_bytes(self) -> int | None:
        return self._number("response_bytes")

    @property
    def latency_ns(self) -> int | None:
        return self._number("latencies")

    @property
    def wait_ns(self) -> int:
        if self._early:
            return self._row.wait_ns
        return self._session.waits[self._index]

    @property
    def excess_ns(self) -> int | None:
        latency = self.latency_ns
        return None if latency is None else max(0, latency - self.wait_ns)

    @property
    def throttle_ms(self) -> int:
        if self._early:
            return self._row.throttle_ms
        return self._session.throttles[self._index]

    @property
    def records(self) -> int | None:
        if self._early:
            return self._row.records
        return self._number("records")
