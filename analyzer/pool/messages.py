"""What workers tell, block by block. Values that go through a pipe."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kafkascope.captures.model import Closed, Connection, Endpoint, Opened, Resolved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kafkascope.analyzer.exchanges.heard import Heard
    from kafkascope.analyzer.exchanges.offline import Capture
    from kafkascope.analyzer.exchanges.records import Problem
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.captures.errors import CutShort
    from kafkascope.captures.statistics import Statistics


NUMBER: Final = 1
CONNECTION: Final = 2
END: Final = 3
"""What marks stand for: the digit behind `Marks.stem`."""
MOST_BYTES: Final = 64 << 20
"""Limit for what is made of one exchange; one process writes more piece by piece."""
USUAL: Final = b"123"
"""These digits in what is usually made of an exchange."""


class Alone(Exception):
    """One process has to read the input: connections depend on each other."""


class Twice(NamedTuple):
    """What was made of an exchange whose topics may have names elsewhere: without them, and with
    `Marks.topic` and the hexadecimal id in their place."""

    nameless: bytes
    named: bytes
    ids: list[bytes]
    topics: list[str]
    """Names of its other topics."""
    stands: list[str]
    """What stands for the names in `nameless`."""
    problems: list[Problem]
    """Of `nameless`; `said` are those of `named`."""
    said: list[Problem]


Shape: TypeAlias = "Callable[[Row, Exchange, TopicNames, list[Problem]], bytes]"


class Marks(NamedTuple):
    """Stand in for numbers and names that a worker does not know. Nobody can foresee them."""

    stem: int
    """What all but `topic` begin with; a digit follows."""
    topic: str = ""

    @property
    def number(self) -> int:
        """Stands for the number of an exchange."""
        return 10 * self.stem + NUMBER

    @property
    def connection(self) -> int:
        """Stands for the number of its connection."""
        return 10 * self.stem + CONNECTION

    @property
    def end(self) -> int:
        """Stands between what was made of two exchanges."""
        return 10 * self.stem + END


def joined(pieces: Iterable[bytes]) -> bytes:
    """Return what is made of one exchange in one piece; raise `Alone` where that takes too much
    memory."""
    found, size = [], 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise Alone
    return b"".join(found)


@dataclass(slots=True)
class Work:
    """What each worker does with the exchanges of its connections. Rows have provisional numbers,
    see `analyzer.places`."""

    wanted: Callable[[Row, Exchange], bool] | None = None
    """The filter; None: all."""
    shape: Shape | None = None
    """Makes what is told of each exchange that is wanted, and adds to its problems; None: nothing
    is told."""
    reshape: Callable[[Row], bytes] | None = None
    """Makes the same of a row alone, for those whose topics have names elsewhere; None: `shape`
    makes JSON, in which their names are put."""
    adds: Sequence[Callable[[Row, Exchange], None]] = ()
    """Called with what is wanted."""
    alls: Sequence[Callable[[Row, Exchange], None]] = ()
    """Called with all exchanges."""
    saws: Sequence[Callable[[Opened | Closed], None]] = ()
    """Called with beginnings and ends of connections."""
    nameds: Sequence[Callable[[Resolved], None]] = ()
    """Called with names of hosts."""
    result: Callable[[], Any] | None = None
    """Returns what was counted, at the end."""
    begins: Callable[[Capture, Callable[[], int]], None] | None = None
    """Called before a capture is read, with it and with what tells the moment of what is read."""
    block: Callable[[], Any] | None = None
    """Called behind each block; what it returns is told."""
    whole: bool = True
    """Whether bodies are asked for, not only what rows need of them."""
    heads: bool = False
    """Whether headers, times and waits of what is wanted suffice."""


class ShapedBlock(NamedTuple):
    """What was made of some exchanges, in order."""

    data: bytes
    exchanges: int
    """Number of the exchanges."""
    nameless: Sequence[str] = ()
    """What stands in it for topics whose names may come late."""
    problems: Sequence[Problem] = ()


def longs() -> array[int]:
    """Return an empty array of numbers."""
    return array("q")


@dataclass(slots=True)
class BlockReport:
    """What a worker tells of a block."""

    opened: list[int] = field(default_factory=list)
    """First packets of new connections."""
    taken: array[int] = field(default_factory=longs)
    """Moments at which numbers were given to exchanges, in their order; 0 for those that another
    worker tells."""
    ranks: dict[int, int] = field(default_factory=dict)
    """By index, of numbers for common connections: how many the connection took at that moment
    before, twice and one more. Left out for the first one that a packet brought."""
    named: list[tuple[int, bytes, str]] = field(default_factory=list)
    """Topics: moment, id, name."""
    learned: list[tuple[int, Endpoint | int]] = field(default_factory=list)
    """Brokers, or ports of nodes, with the moment from which on they are known."""
    asked: list[tuple[int, Endpoint | int]] = field(default_factory=list)
    """The same that were asked for in vain."""
    sealed: list[tuple[int, bytes]] = field(default_factory=list)
    """Names that connections with TLS have, as digests, with the moment: see `keys`."""
    unsealed: list[tuple[int, bytes]] = field(default_factory=list)
    """The same that were asked for."""
    woken: array[int] = field(default_factory=longs)
    """Moments before packets: deadlines were over."""
    spans: array[int] = field(default_factory=longs)
    """Moments of the first and the last packet of each run that brought something before its last
    packet: had others been woken meanwhile, one process would have ended the run there."""
    moments: array[int] = field(default_factory=longs)
    """Of the exchanges that something is told of: when each was complete, see
    `captures.streams.shares`."""
    numbers: array[int] = field(default_factory=longs)
    """Which of the worker's numbers each has, from 0."""
    turns: dict[int, int] = field(default_factory=dict)
    """The same of exchanges that a moment completed."""
    connections: array[int] = field(default_factory=longs)
    """Numbers of the first packets of their connections."""
    text: bytes = b""
    """What was made of each, with a mark behind it, and `%d` in place of all marks."""
    kinds: bytes = b""
    """What the marks in it were, in order; empty: the usual ones of each exchange."""
    unusual: dict[int, Row | Twice] = field(default_factory=dict)
    """By index: where a topic's name may be known elsewhere; a row, if `Work.reshape` wants it."""
    problems: dict[int, list[Problem]] = field(default_factory=dict)
    """By the same index."""
    block: Any = None
    """What `Work.block` returned."""
    read: int = 0
    """Bytes of packets that were read so far."""
    exchanges: int = 0
    """Exchanges that were read, wanted or not."""
    wanted: int = 0
    """Those that the filter takes."""
    first: tuple[int, int] | None = None
    """Moment and beginning (ns) of the worker's first exchange."""

    def learning(self) -> tuple[int, int, int, int]:
        """Return how much an event may add to that depends on what others do meanwhile."""
        return len(self.taken), len(self.named), len(self.learned), len(self.asked)


class Now:
    """The moment of the event that a worker looks at, and what it tells of its block."""

    def __init__(self) -> None:
        self.moment = 0
        self.told = BlockReport()


@dataclass(slots=True)
class Sums:
    """What a worker has counted at the end."""

    statistics: Statistics
    damage: CutShort | None
    skipped_bytes: int
    opaque: Counter[str]
    encrypted: list[Connection]
    key_log: bool
    """Whether there is a key log, given or inside the input."""
    heard: Heard
    brokers: set[Endpoint]
    results: list[Any]
    """What the workers' own counting gave, see `Work.result`: one of each."""
    said: list[str] = field(default_factory=list)
    """Lines that a worker would have written to stderr."""
    beyond: set[str] = field(default_factory=set)
    """See `Context.left_out`."""
