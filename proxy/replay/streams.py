"""Compares the fetched records of each partition as one stream, for a broker may return the same
records in other portions. Sans-I/O.

Batches that both sides returned alike are done with at once, unopened: bytes are compared but for
what the broker that wrote them chose (leader epoch, producer). The others wait for their like, and
are opened in the end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, Final, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.records.records import Batch, Partial, batches, open_batch
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.replay.split import partitions

# That a batch takes beside its own.
ENTRY_BYTES: Final = 400

_ATTRIBUTES_AT: Final = 21
# Of a magic 2 batch: attributes, offset delta and times stand before the producer.
_PRODUCER_AT: Final = 43
_SEQUENCE_AT: Final = 53

# Topic (name, or id when nobody knows the name) and partition.
TopicPartition: TypeAlias = tuple[Any, int]


class Streams:
    """Collects the records of responses; `differences` says what is missing or other."""

    def __init__(self, topic_name: Callable[[bytes], str | None], limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._topic_name = topic_name
        self._places: dict[TopicPartition, _Pair] = {}
        self._waiting: dict[tuple[TopicPartition, int, int], bytes] = {}
        """(place, side, base offset) -> batch, the oldest first."""
        self._bytes = 0
        self._left = limits.compared_records
        self._agreed = 0
        self.left_out = 0
        """Records, and batches, that are not compared: there are too many."""
        self.unreadable: Counter[str] = Counter()

    def add(self, layout: Layout, captured: Body, live: Body) -> None:
        for side, body in enumerate((captured, live)):
            for topic, number, part in partitions(layout, body):
                if part["records"]:
                    self._take((topic, number), side, part["records"])

    def _take(self, place: TopicPartition, side: int, data: bytes) -> None:
        pair = self._places.get(place)
        if pair is None:
            if len(self._places) >= self._limits.compared_partitions:
                self.left_out += 1
                return
            pair = self._places[place] = _Pair()
        try:
            for batch in batches(data):
                if not isinstance(batch, Partial) and not batch.control:
                    self._batch(place, pair, side, data, batch)
        except DissectError as error:
            self._cannot(error)

    def _cannot(self, error: Exception) -> None:
        reason = str(error)
        if reason in self.unreadable or len(self.unreadable) < self._limits.unreadable_reasons:
            self.unreadable[reason] += 1

    def _batch(
        self, place: TopicPartition, pair: _Pair, side: int, data: bytes, batch: Batch
    ) -> None:
        base = batch.base_offset
        if base in pair.agreed:
            pair.look_again(data, batch)
            return
        if (place, side, base) in self._waiting:
            return
        if batch.magic != 2:
            # An entry of a message set, which the other side may have given as a batch.
            self._open(pair, side, data, batch)
            return
        whole = data[batch.at : batch.at + batch.size]
        other = self._waiting.get((place, 1 - side, base))
        if other is not None and _same_records(whole, other):
            self._bytes -= len(self._waiting.pop((place, 1 - side, base))) + ENTRY_BYTES
            self._agreed += 1
            pair.agree(data, batch, known=self._agreed <= self._limits.equal_batches)
            return
        self._waiting[place, side, base] = whole
        self._bytes += len(whole) + ENTRY_BYTES
        while self._bytes > self._limits.waiting_batch_bytes:
            self._open_oldest()

    def _open_oldest(self) -> None:
        place, side, _ = key = next(iter(self._waiting))
        whole = self._waiting.pop(key)
        self._bytes -= len(whole) + ENTRY_BYTES
        pair = self._places[place]
        for batch in batches(whole):
            if not isinstance(batch, Partial):
                self._open(pair, side, whole, batch)

    def _open(self, pair: _Pair, side: int, data: bytes, batch: Batch) -> None:
        stream = pair.sides[side]
        opened = open_batch(data, batch)
        for record in opened.records:
            if self._left <= 0:
                self.left_out += 1
                continue
            self._left -= record.offset not in stream
            text = repr((record.key, record.value, tuple(record.headers)))
            stream[record.offset] = blake2b(text.encode(), digest_size=8).digest()
        if opened.error is not None:
            self._cannot(opened.error)

    def differences(self) -> Iterator[tuple[str, str, str]]:
        """Yield one or two for each partition whose records differ: where, then, and now."""
        while self._waiting:
            try:
                self._open_oldest()
            except DissectError as error:
                self._cannot(error)
        for place in sorted(self._places, key=str):
            pair, name = self._places[place], place[0]
            if not isinstance(name, str):
                name = self._topic_name(name) or name.hex()
            where = f"records of {name}-{place[1]}"
            other, missing = pair.unlike()
            count = pair.count()
            if other:
                yield where, f"{count} records", f"{other} of them with other contents"
            if missing:
                yield where, f"{count} records", f"{count - missing} of them fetched"


class _Pair:
    """One partition: the batches that both sides returned alike, and the opened rest of either
    side."""

    def __init__(self) -> None:
        self.agreed: dict[int, tuple[int, int]] = {}
        """Base offset of a batch -> last offset and checksum."""
        self.agreed_records = 0
        self.contradicted = 0
        """Records of batches that came once more, with other contents."""
        self.sides: tuple[dict[int, bytes], dict[int, bytes]] = ({}, {})
        """Offset -> hash of key, value and headers."""

    def agree(self, data: bytes, batch: Batch, *, known: bool = True) -> None:
        if known:
            self.agreed[batch.base_offset] = (batch.last_offset, _checksum(data, batch))
        self.agreed_records += batch.record_count or 0

    def look_again(self, data: bytes, batch: Batch) -> None:
        last, checksum = self.agreed[batch.base_offset]
        if batch.magic == 2 and batch.last_offset == last and _checksum(data, batch) != checksum:
            self.contradicted += batch.record_count or 0

    def _rest(self, side: int) -> dict[int, bytes]:
        """What of a side is in no batch that both gave."""
        bases = sorted(self.agreed)

        def unmatched(offset: int) -> bool:
            at = bisect_right(bases, offset) - 1
            return at < 0 or self.agreed[bases[at]][0] < offset

        return {offset: each for offset, each in self.sides[side].items() if unmatched(offset)}

    def unlike(self) -> tuple[int, int]:
        then, now = self._rest(0), self._rest(1)
        other = sum(1 for offset in then.keys() & now.keys() if then[offset] != now[offset])
        return other + self.contradicted, len(then.keys() - now.keys())

    def count(self) -> int:
        return self.agreed_records + len(self._rest(0))


def _checksum(data: bytes, batch: Batch) -> int:
    import google_crc32c

    return int(google_crc32c.value(data[batch.at + _SEQUENCE_AT : batch.at + batch.size]))


def _same_records(one: bytes, other: bytes) -> bool:
    """Whether two magic 2 batches hold the same records with the same times."""
    if len(one) != len(other):
        return False
    return (
        one[_ATTRIBUTES_AT:_PRODUCER_AT] == other[_ATTRIBUTES_AT:_PRODUCER_AT]
        and one[_SEQUENCE_AT:] == other[_SEQUENCE_AT:]
    )
