"""Exchanges of one connection, API, version and client as columns, for statistics.

Most exchanges are answered soon and without an error. Of one connection, a Produce or Fetch differs
from the others in times, sizes and records, and in nothing else; so does any other API from those
with the same topics, groups and members. Compiled by mypyc; the same source runs without.
"""

from __future__ import annotations

from typing import Any, Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from kafkascope.kernel.pairs import FETCH, HEADER, PRODUCE, Pair, place_of
from kafkascope.kernel.path import MASK
from kafkascope.kernel.walker import ABSENT, Partition

# A usual exchange takes less: whatever takes longer may be worth a word.
SOON: Final[i64] = 1_000_000_000
# From this version on, a Fetch brings at least one batch if there is any (KIP-74).
WHOLE: Final[i64] = 3
LARGEST: Final = (1 << 62) - 1
ID_MARK: Final = "\0"
"""Begins a topic id in a key: as `statistics.model.ID_MARK`."""


class PartitionRows:
    """What the exchanges of a group sent to, or fetched from, one partition with one outcome."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        """(begin, end, number, index in the batch, place among the partitions, offset that a Fetch
        asked for, high watermark, last stable offset, log start, whether another broker is named,
        whether the response is about the partition, base offset that the broker gave, records,
        number of batches) of each exchange."""
        self.batches: list[tuple[Any, ...]] = []
        """The values of a `dissectors.records.batches.Batch`, of all exchanges in order."""
        self.counts: list[int] = []
        """Records of each batch."""


class PairGroup:
    """Ordinary exchanges that differ in times, sizes and records."""

    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        self.sources: list[Any] = []
        """What the rows of these are made of."""


class Partitions:
    """What exchanges carried of partitions."""

    def __init__(self) -> None:
        self.parts: dict[Any, PartitionRows] = {}
        """By topic key, partition and error."""
        self.unanswered: dict[Any, list[tuple[Any, ...]]] = {}
        """By topic key and partition, what a Fetch asked for and no response was about: time, time
        of the response (None where it is missing or an error), offset."""


def key_of(pair: Pair) -> tuple[Any, ...] | None:
    """Return what the exchanges of a group have in common; None for an exchange that has to be
    looked at by itself."""
    plan, facts = pair.plan, pair.facts
    key = plan.key
    if not pair.answered or not pair.counted:
        return None
    # Clocks may go back between two packets.
    latency: i64 = pair.response_last_ns - pair.first_ns
    if latency < 0 or latency >= SOON:
        return None
    if not pair.undisturbed():
        return None
    if facts.errors is not None or facts.throttle != 0:
        return None
    if key != PRODUCE and key != FETCH:
        return pair.about()
    if facts.endpoints or (key == FETCH and plan.version < WHOLE):
        return None
    produces = facts.producer_ids is not None or len(pair.batch_producers) > 0
    if key == PRODUCE:
        named = facts.transactional_ids
        name: str | None = None
        if named is not None:
            for each in named:
                name = each
        return (pair.reader, plan, pair.client_id, produces, pair.trip, name)
    return (
        pair.reader,
        plan,
        pair.client_id,
        produces,
        pair.trip,
        facts.replica,
        facts.max_wait,
        facts.isolation,
        facts.rack,
    )


def collect(items: list[Any], groups: dict[Any, PairGroup]) -> tuple[list[Any], int]:
    """Take the ordinary exchanges into their groups; return the others, and the bytes of those
    that were taken."""
    others: list[Any] = []
    size: i64 = 0
    for item in items:
        if isinstance(item, Pair):
            key = key_of(item)
            if key is not None:
                gather(item, key, groups, item)
                size += item.end - item.begin + item.response_end - item.response_begin
                continue
        others.append(item)
    return others, size


def gather(pair: Pair, key: tuple[Any, ...], groups: dict[Any, PairGroup], source: Any) -> None:
    """Take an ordinary exchange into its group; `source`: what its row is made of."""
    group = groups.get(key)
    if group is None:
        group = groups[key] = PairGroup()
    group.pairs.append(pair)
    group.sources.append(source)


def column(pairs: list[Pair], field: i64) -> list[Any]:
    """Return one value of each pair: see `Pair.value`."""
    out: list[Any] = []
    for pair in pairs:
        value = pair.value(field)
        if value == ABSENT:
            out.append(None)
        else:
            out.append(value)
    return out


def partitions_of(pairs: list[Pair]) -> Partitions:
    found = Partitions()
    index: i64 = 0
    for pair in pairs:
        facts = pair.facts
        head = pair.first_ns, pair.response_last_ns, pair.number, index
        if pair.plan.key == PRODUCE:
            produced(found, head, facts.asked, facts.told, pair.data, None)
        else:
            offsets = None if pair.session is None else pair.session.offsets
            fetched(found, head, facts.asked, facts.told or [], pair.response, None, offsets)
        index += 1
    return found


def produced(
    into: Partitions,
    head: tuple[Any, ...],
    request: list[Partition] | None,
    response: list[Partition] | None,
    data: bytes,
    walk: Any,
) -> None:
    """Take in the partitions of a Produce. `head`: begin, end, number of the exchange, and its
    index in the batch; `walk`: see `take`."""
    at: i64 = 0
    if request is None:
        return
    begin, end, number, index = head
    for part in request:
        result = result_of(response, part, at)
        base: int | None = None
        error: i64 = 0
        if result is not None:
            error = result.error
            if result.offset >= 0:
                base = result.offset
        rows = rows_of(into, part, error)
        blob, held = take(rows, data, part, walk)
        answered = result is not None
        row = begin, end, number, index, at, None, -1, -1, -1, False, answered, base, blob, held
        rows.rows.append(row)
        at += 1


def fetched(
    into: Partitions,
    head: tuple[Any, ...],
    request: list[Partition] | None,
    response: list[Partition] | None,
    data: bytes,
    walk: Any,
    offsets: Any,
) -> None:
    """Take in the partitions of a Fetch: as `produced`. `offsets`: of partitions that the request
    does not list, see `FetchSession.offsets`."""
    at: i64 = 0
    begin, end, number, index = head
    missing: dict[Any, int] = {}
    if request is not None:
        for part in request:
            missing[(topic_of(part), part.index)] = part.offset
    if response is not None:
        for part in response:
            sent = missing.pop((topic_of(part), part.index), None) if missing else None
            if sent is None and offsets is not None:
                sent = offsets.get(place_of(part))
            rows = rows_of(into, part, part.error)
            blob, held = take(rows, data, part, walk)
            high, last, low, away = part.high, part.stable, part.start, part.elsewhere
            # No star in it: compiled, that makes a list first.
            row = begin, end, number, index, at, sent, high, last, low, away, True, None, blob, held
            rows.rows.append(row)
            at += 1
    for place, left in missing.items():
        found = into.unanswered.get(place)
        if found is None:
            found = into.unanswered[place] = []
        found.append((begin, None if response is None else end, left))


def result_of(response: list[Partition] | None, part: Partition, at: i64) -> Partition | None:
    """Return the part of a response that is about a partition: nearly always at the same place."""
    if response is None:
        return None
    if at < len(response):
        same = response[at]
        if same.index == part.index and topic_of(same) == topic_of(part):
            return same
    topic = topic_of(part)
    found: Partition | None = None
    for each in response:
        if each.index == part.index and topic_of(each) == topic:
            found = each
    return found


def topic_of(part: Partition) -> str | None:
    """Return the key of a topic: as `statistics.model.topic_key`."""
    raw = part.topic_id
    if raw is not None and any(raw):
        return ID_MARK + raw.hex()
    return part.topic if part.topic else None


def rows_of(into: Partitions, part: Partition, error: i64) -> PartitionRows:
    place = (topic_of(part), part.index, error)
    rows = into.parts.get(place)
    if rows is None:
        rows = into.parts[place] = PartitionRows()
    return rows


def take(rows: PartitionRows, data: bytes, part: Partition, walk: Any) -> tuple[bytes, int]:
    """Take in the record batches of a partition; return the field that holds them, and how many.
    `walk` gives batches and counts; None: all are record batches, which are read here."""
    at = part.at
    end: i64 = at + part.size
    blob = data[at:end] if part.size > 0 else b""
    held: i64 = 0
    start = at
    if walk is not None:
        batches, counts = walk(blob)
        rows.batches += batches
        rows.counts += counts
        return blob, len(batches)
    while end - at >= 17:
        length: i64 = i64(read_i32_be(data, at + 8)) + 12
        if length < HEADER or length > end - at:
            break
        base = read_i64_be(data, at)
        last: i64 = base + i64(read_i32_be(data, at + 23))
        epoch: i64 = i64(read_i32_be(data, at + 12))
        crc: i64 = i64(read_i32_be(data, at + 17)) & 0xFFFFFFFF
        bits: i64 = i64(read_i16_be(data, at + 21))
        count: i64 = i64(read_i32_be(data, at + 57))
        offset: i64 = at - start
        low = read_i64_be(data, at + 27)
        high = read_i64_be(data, at + 35)
        owner = read_i64_be(data, at + 43)
        its: i64 = i64(read_i16_be(data, at + 51))
        first: i64 = i64(read_i32_be(data, at + 53))
        rows.batches.append(
            (offset, length, 2, base, last, epoch, crc, bits, low, high, owner, its, first, count)
        )
        rows.counts.append(count if count > 0 else 0)
        held += 1
        at += length
    return blob, held


def schema_at(data: bytes, at_: int) -> int:
    """Return the schema id that the value of the record at an offset begins with: a byte 0, and 32
    bits; 0 where it has none."""
    _, at = uvarint(data, at_)
    # After the size of the record: its attributes, its timestamp, its offset.
    _, at = uvarint(data, at + 1)
    _, at = uvarint(data, at)
    key, at = uvarint(data, at)
    size, at = uvarint(data, at + (key >> 1 if key & 1 == 0 else 0))
    # More than the id, and not null.
    if size & 1 != 0 or size >> 1 <= 5 or at + 5 > len(data) or data[at] != 0:
        return 0
    return read_i32_be(data, at + 1)


def uvarint(data: bytes, at: i64) -> tuple[i64, i64]:
    """Return an unsigned varint of 32 bits, and the offset after it; -1 and the end where there is
    none."""
    value: i64 = 0
    shift: i64 = 0
    while at < len(data) and shift < 35:
        byte: i64 = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > MASK:
                break
            return value, at
        shift += 7
    return -1, len(data)


def tally(values: Any, times: int, buckets: dict[int, int]) -> tuple[int, int, int] | None:
    """Count each value but None so many times in buckets, as `merging.histogram` has them; return
    their sum, the smallest and the largest. Negative ones (clocks that went back) count as 0."""
    total = low = high = run = 0
    last: i64 = -1
    for each in values:
        if each is None:
            continue
        number: int = each
        if number < 0:
            number = 0
        total += number
        if last < 0 or number < low:
            low = number
        if number > high:
            high = number
        shift: i64 = 0
        while number > LARGEST:
            number >>= 1
            shift += 1
        value: i64 = number
        while value >= 2048:
            value >>= 5
            shift += 5
        while value >= 64:
            value >>= 1
            shift += 1
        value += shift << 5
        # Neighbours often have one bucket: sizes, transfers that took no time.
        if value != last and run:
            buckets[last] = buckets.get(last, 0) + run
            run = 0
        last = value
        run += times
    if last < 0:
        return None
    buckets[last] = buckets.get(last, 0) + run
    return total * times, low, high
