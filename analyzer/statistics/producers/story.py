"""Sequences of producers and lives of transactions, from their events in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from kafkascope.analyzer.merging.bounded import Event
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.dissectors.reference.codes import error_name

# Sequence numbers begin again at 0 after this many.
SEQUENCES: Final = 1 << 31
OUT_OF_ORDER: Final = 45
DUPLICATE: Final = 46
FENCING: Final = frozenset({47, 49, 90})
"""INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED."""
INVALID_TXN_STATE: Final = 48

BEGAN: Final = "began before the capture, or was empty"

TransactionOutcome: TypeAlias = Literal[
    "committed", "aborted", "open", "fenced", "superseded", "failed"
]


@dataclass(slots=True)
class SequenceLane:
    """Batches of a producer to a partition in one epoch."""

    producer_id: int
    producer_epoch: int
    topic: Any
    partition: int
    batches: int = 0
    records: int = 0
    repeats: int = 0
    """Batches that were sent before, with the same sequence."""
    retried: int = 0
    """Batches among these whose earlier sending was answered with an error: there is no copy."""
    refused: int = 0
    """Batches that were out of order, and that no broker took later."""
    missing: int = 0
    """Sequence numbers between the first and the last that no accepted batch has."""
    failed: int = 0
    errors: set[int] = field(default_factory=set)
    first_sequence: int | None = None
    last_sequence: int | None = None
    repeated: int | None = None
    """Number of the first exchange that repeats one."""
    repeated_first: int | None = None
    """Its time, and that of the last one."""
    repeated_last: int | None = None
    gap: int | None = None
    """Number of the first exchange after a gap."""
    gap_first: int | None = None
    unseen: bool = False
    """Whether a broker acknowledged a batch after all gaps: it takes none out of order, so it had
    what is missing here."""


def lanes_of(events: Sequence[Event]) -> list[SequenceLane]:
    """Return one lane per epoch and partition; events in order."""
    abouts = ((event, event.about) for event in events if event.kind == "batch")
    found = by_key(
        ((about["producer"], about["epoch"], about["topic"] or "", about["partition"]), event)
        for event, about in abouts
        if about["sequence"] >= 0
    )
    return [_followed(SequenceLane(*key), found[key]) for key in sorted(found)]


def _followed(lane: SequenceLane, events: list[Event]) -> SequenceLane:
    seen: dict[int, int | None] = {}
    """Sequence -> error of the last time it was sent."""
    out_of_order: set[int] = set()
    taken: list[tuple[int, int, int, int]] = []
    """(place, records, number of the exchange, time) of what was not refused"""
    acknowledged = -SEQUENCES
    """The last place of those that were answered."""
    base = events[0].about["sequence"]
    for event in events:
        about = event.about
        sequence, count, error = about["sequence"], about["records"], about["error"]
        lane.batches += 1
        lane.records += count
        if error:
            lane.failed += 1
            lane.errors.add(error)
        # A retry has the sequence of what it repeats (KIP-98). A broker that has that already
        # answers with its offset (last five batches), or DUPLICATE_SEQUENCE_NUMBER.
        if sequence in seen:
            lane.repeats += 1
            lane.retried += seen[sequence] not in (None, 0, DUPLICATE)
            if lane.repeated is None:
                lane.repeated, lane.repeated_first = event.number, event.time_ns
            lane.repeated_last = event.time_ns
        seen[sequence] = error
        if error == OUT_OF_ORDER:
            out_of_order.add(sequence)
        if not error or error == DUPLICATE:
            out_of_order.discard(sequence)
            # Counted from the first one, so that the wrap at 2^31 is none.
            place = (sequence - base + SEQUENCES // 2) % SEQUENCES - SEQUENCES // 2
            taken.append((place, count, event.number, event.time_ns))
            if about["answered"]:
                acknowledged = max(acknowledged, place)
    # What is out of order now may have been taken later: producers resend all batches in flight
    # after one that failed.
    lane.refused = len(out_of_order)
    if not taken:
        lane.first_sequence = lane.last_sequence = base
        return lane
    taken.sort()
    end = taken[0][0]
    for place, count, number, time_ns in taken:
        if place > end:
            lane.missing += place - end
            lane.unseen = acknowledged >= place
            if lane.gap is None:
                lane.gap, lane.gap_first = number, time_ns
        end = max(end, place + count)
    lane.first_sequence = (taken[0][0] + base) % SEQUENCES
    lane.last_sequence = (end - 1 + base) % SEQUENCES
    return lane


@dataclass(slots=True)
class Transaction:
    """One transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    begin_ns: int
    number: int
    end_number: int | None = None
    end_ns: int | None = None
    outcome: TransactionOutcome = "open"
    partitions: set[tuple[Any, int]] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    records: int = 0
    unread: bool = False
    """Whether it is known from lines of request logs, which have no records."""
    text: str = ""
    timeout_ms: int | None = None
    """transaction.timeout.ms of its producer, where its InitProducerId was seen."""


def transactions_of(name: str, events: Sequence[Event]) -> list[Transaction]:
    """Return the transactions of an id; events in order."""
    out: list[Transaction] = []
    current: Transaction | None = None
    timeout_ms: int | None = None
    for event in events:
        about = event.about
        if event.kind == "init":
            timeout_ms = about.get("timeout_ms") if about["error"] == 0 else timeout_ms
            if current is not None and about["error"] == 0:
                _end(current, "superseded", event, "a new producer with its id started")
                current = None
            continue
        if event.kind == "end":
            current = _ended(current, event, out, name)
            continue
        if current is None or (about["producer"], about["epoch"]) != (
            current.producer_id,
            current.producer_epoch,
        ):
            if about["error"] in FENCING:
                # A producer that was fenced before cannot begin a transaction of its own.
                continue
            if current is not None:
                _end(current, "superseded", event, "another epoch continues")
            current = _begin(name, event)
            current.timeout_ms = timeout_ms
            out.append(current)
        if event.kind == "batch":
            current.partitions.add((about["topic"], about["partition"]))
            current.records += 0 if about["error"] else about["records"]
        elif event.kind == "partitions":
            current.partitions.update((topic, number) for topic, number in about["partitions"])
        else:
            current.groups.add(about["group"])
        if about["error"] in FENCING:
            _end(current, "fenced", event, f"got {error_name(about['error'])}")
            current = None
    return out


def _begin(name: str, event: Event) -> Transaction:
    about = event.about
    found = Transaction(name, about["producer"], about["epoch"], event.time_ns, event.number)
    found.unread = about.get("unread", False)
    return found


def _ended(
    current: Transaction | None, event: Event, out: list[Transaction], name: str
) -> Transaction | None:
    about = event.about
    if current is None:
        if about["error"] != 0 or (out and _again(out, event)):
            return None
        # It began before the capture did.
        current = _begin(name, event)
        current.text = BEGAN
        out.append(current)
    error = about["error"]
    if error is None:
        word = "commit" if about["committed"] else "abort"
        current.text = f"{word} was requested, no response seen"
        return current
    if error in FENCING:
        _end(current, "fenced", event, f"got {error_name(error)}")
        return None
    if error == INVALID_TXN_STATE:
        # Since transactions of version 2 (KIP-890, Kafka 4.0) the end of one that the coordinator
        # has aborted, after its timeout, gets this.
        _end(current, "failed", event, f"got {error_name(error)}")
        return None
    if error:
        # Asked again later, as after CONCURRENT_TRANSACTIONS.
        current.text = f"got {error_name(error)}"
        return current
    text = current.text if current.text == BEGAN else ""
    _end(current, "committed" if about["committed"] else "aborted", event, text)
    return None


def _again(out: list[Transaction], event: Event) -> bool:
    """Return whether it repeats the end of the transaction before."""
    last = out[-1]
    if last.producer_id != event.about["producer"]:
        return False
    word = "committed" if event.about["committed"] else "aborted"
    return (
        last.outcome == word and last.producer_epoch == event.about["epoch"] and last.text != BEGAN
    )


def _end(current: Transaction, outcome: TransactionOutcome, event: Event, text: str) -> None:
    current.outcome = outcome
    current.end_number = event.number
    current.end_ns = event.end_ns
    current.text = text
