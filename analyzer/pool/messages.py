"""Messages of workers, block by block: values that go through a pipe."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kafkascope.captures.model import BEHIND_ALL, Closed, Connection, Endpoint, Opened, Resolved
from kafkascope.captures.streams.shares import NeedsSingleProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kafkascope.analyzer.conversation.context import CrossCheck
    from kafkascope.analyzer.exchanges.pairs import Item, Rows
    from kafkascope.analyzer.exchanges.records import Problem
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.pool.captured_sides import CapturedSides
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.captures.errors import CutShort
    from kafkascope.captures.model import Statistics

# Limit for what is made of one exchange; one process writes more piece by piece.
MOST_BYTES: Final = 64 << 20
# In place of a size: the filter does not take the exchange.
NOT_WANTED: Final = -1

Shape: TypeAlias = "Callable[[Row, Exchange, TopicNames, list[Problem]], bytes]"


class Placeholders(NamedTuple):
    """Replace numbers that a worker does not know; random, so that traffic cannot contain them."""

    number: int
    connection: int


def joined(pieces: Iterable[bytes]) -> bytes:
    """Return what is made of one exchange in one piece; raise `NeedsSingleProcess` where that takes
    too much memory."""
    found, size = [], 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise NeedsSingleProcess
    return b"".join(found)


@dataclass(slots=True)
class Work:
    """What each worker does with the exchanges of its connections. Rows have provisional numbers,
    see `pipeline.tables.numbers`."""

    wanted: Callable[[Row, Exchange], bool] | None = None
    """The filter; None: all."""
    shape: Shape | None = None
    """Makes what is printed of each exchange that is wanted, and adds to its problems; None:
    nothing is."""
    on_match: Sequence[Callable[[Row, Exchange], None]] = ()
    """Called with what is wanted."""
    on_exchange: Sequence[Callable[[Row, Exchange], None]] = ()
    """Called with all exchanges."""
    on_batch: Sequence[Callable[[list[Item], Rows], None]] = ()
    """Called with all exchanges, many at a time."""
    on_connection: Callable[[Opened | Closed], None] | None = None
    """Called with beginnings and ends of connections."""
    on_name: Callable[[Resolved], None] | None = None
    """Called with names of hosts."""
    result: Callable[[], Any] | None = None
    """Returns what was counted, at the end."""


class ShapedBlock(NamedTuple):
    """Output for consecutive exchanges."""

    data: bytes
    exchanges: int
    """Number of the exchanges."""
    nameless: Sequence[str] = ()
    """Placeholders in it for topics without a name."""
    problems: Sequence[Problem] = ()


class Oddity(NamedTuple):
    """Additions to the text that few exchanges have."""

    problems: list[Problem]
    nameless: list[str]


def longs() -> array[int]:
    return array("q")


@dataclass(slots=True)
class WorkerBatch:
    """Message of a worker about a block."""

    opened: list[int] = field(default_factory=list)
    """First packets of new connections."""
    origins: array[int] = field(default_factory=longs)
    """Packets and offsets of the exchanges, in the order in which they were complete."""
    watermark: int = 0
    """The first packet in which an exchange of the worker may be found to begin yet, but those
    below."""
    begun: array[int] = field(default_factory=longs)
    """Packets and offsets of those that began before it, and are not sent."""
    sizes: array[int] = field(default_factory=longs)
    """Bytes of the text of each exchange; `NOT_WANTED`. Empty where nothing is printed."""
    connections: array[int] = field(default_factory=longs)
    """Numbers of the first packets of the connections of those that are wanted."""
    text: bytes = b""
    """With `Placeholders`."""
    odd: dict[int, Oddity] = field(default_factory=dict)
    """By index of the exchange."""
    names: list[tuple[bytes, str]] = field(default_factory=list)
    """Topics: id, name."""
    cross_checks: set[CrossCheck] = field(default_factory=set)
    """See `Context.cross_checks`."""
    cross_facts: list[CrossCheck] = field(default_factory=list)
    """New facts that answer cross checks of other workers."""
    read: int = 0
    """Bytes of packets that were read so far."""
    wanted: int = 0
    """Exchanges that the filter takes."""


@dataclass(slots=True)
class WorkerSummary:
    """Counts of a worker at the end."""

    statistics: Statistics
    damage: CutShort | None
    skipped_bytes: int
    opaque: Counter[str]
    encrypted: list[Connection]
    key_log: bool
    """Whether there is a key log, given or inside the input."""
    heard: CapturedSides
    brokers: set[Endpoint]
    results: list[Any]
    """What the workers' own counting gave, see `Work.result`: one of each."""
    first: tuple[int, int] = (BEHIND_ALL, 0)
    """First packet of the first exchange, and when it, or its connection, began (ns)."""
    messages: list[str] = field(default_factory=list)
    """Lines that a worker would have written to stderr."""
    left_out: set[str] = field(default_factory=set)
    """See `Context.left_out`."""
