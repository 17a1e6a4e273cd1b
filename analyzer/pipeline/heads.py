"""The beginnings of connections, which hold the handshakes of TLS: what of all segments is looked
at before the others, and what is noted of them for `keys.Agreement`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.offline import BROKER_LEG
from kafkascope.analyzer.pipeline import state
from kafkascope.analyzer.pipeline.brokers import ENDLESS, Brokers, Watched
from kafkascope.analyzer.pipeline.keys import TaskKeys
from kafkascope.analyzer.pipeline.segments import NAMES, STATE, rows_in, segments_of
from kafkascope.analyzer.pipeline.segments import SCHEMA as SEGMENTS
from kafkascope.analyzer.pipeline.tables.arrow import record_batch
from kafkascope.analyzer.pipeline.tables.numbers import connection_place
from kafkascope.analyzer.pipeline.tables.schemas import FACTS
from kafkascope.captures.packets.tcp import SYN
from kafkascope.captures.streams.reassembly import Reassembler

if TYPE_CHECKING:
    from kafkascope.analyzer.pipeline.flows import Setting
    from kafkascope.analyzer.pipeline.segments import SegmentRow
    from kafkascope.captures.model import StreamEvent

HEAD_BYTES: Final = 128 << 10
"""Payload of each direction that is looked at, from the start of a connection or of a part of a
file: a handshake with long chains of certificates takes some ten thousand bytes, and the first
record of a connection without one 16 KB at most."""
KNOWN_FLOWS: Final = 200_000
"""Limit of directions whose bytes are counted."""


def heads(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the segments of one part of a file with which connections begin, or go on there."""
    seen: Counter[bytes] = Counter()
    for batch in batches:
        if len(seen) > KNOWN_FLOWS:
            seen.clear()
        found = (_head(row, seen) for row in rows_in(batch) if row.first >= 0)
        yield record_batch([each for each in found if each is not None], SEGMENTS)


def _head(row: SegmentRow, seen: Counter[bytes]) -> tuple[Any, ...] | None:
    """Return a row with the packets that are at the beginning of their direction; None without."""
    flows = row.flows
    packets = row.packets
    if (packets["flags"] & SYN).any():
        # A connection begins somewhere in it.
        payload = bytes(row.payload)
        for flow in flows:
            del seen[flow]
    elif all(seen[flow] >= HEAD_BYTES for flow in flows):
        return None
    else:
        wanted = np.zeros(len(packets), np.bool_)
        for number, flow in enumerate(flows):
            mine = packets["flow"] == number
            ends = seen[flow] + np.cumsum(np.where(mine, packets["captured"], 0), dtype=np.int64)
            wanted |= mine & (ends - packets["captured"] < HEAD_BYTES)
            seen[flow] = int(ends[-1])
        ends = np.cumsum(packets["captured"], dtype=np.int64)
        bounds = np.stack([ends - packets["captured"], ends], 1)[wanted].tolist()
        payload = b"".join(row.payload[start:end] for start, end in bounds)
        packets = packets[wanted]
        if not len(packets):
            return None
    names = b"".join(bytes((len(flow),)) + flow for flow in flows)
    return row.flow_id, int(packets["packet"][0]), names, packets.tobytes(), payload


def notes_in(batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Yield the notes that `Handshakes` made."""
    for batch in batches:
        yield from batch.column("json").to_pylist()


class Handshakes:
    """One task: takes rows of segments, sorted by connection and packet; yields the notes of
    `TaskKeys` as facts."""

    def __init__(self, setting: Setting) -> None:
        assert setting.keys is not None
        self._setting = setting
        self._brokers = Brokers(setting.known)
        self._keys = TaskKeys(setting.keys, lambda: self._brokers.now)
        self._context = Context(setting.options.decode_as, bodies=False)
        self._context.brokers = self._brokers
        self._context.keys = self._keys

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the facts."""
        current: int | None = None
        reassembler, watched = self._begin()
        for batch in batches:
            for row in rows_in(batch):
                if row.first == NAMES:
                    continue
                if row.flow_id != current:
                    self._end(reassembler, watched)
                    reassembler, watched = self._begin()
                    current = row.flow_id
                if row.first == STATE:
                    reassembler, watched, _ = state.load(
                        bytes(row.payload), self._context, self._setting.comment
                    )
                    continue
                for segment in segments_of(row):
                    self._brokers.now = segment.packet
                    reassembler.connections = connection_place(segment.packet)
                    self._take(reassembler.feed(segment), watched)
        self._end(reassembler, watched)
        yield record_batch([("tls", note) for note in self._keys.notes()], FACTS.schema)

    def _begin(self) -> tuple[Reassembler, Watched]:
        self._brokers.begin()
        return Reassembler(self._setting.comment), Watched(self._context)

    def _end(self, reassembler: Reassembler, watched: Watched) -> None:
        self._brokers.now = ENDLESS
        if self._setting.keep is None:
            self._take(reassembler.finish(self._setting.last_ns), watched)

    def _take(self, events: Iterable[StreamEvent], watched: Watched) -> None:
        both = self._setting.options.both_legs
        for event in events:
            if not both and event.connection.interface_comment == BROKER_LEG:
                continue
            if watched.wants(event.connection):
                watched.feed(event)
