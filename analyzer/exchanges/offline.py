"""Capture files to exchanges: the only module that joins captures and conversations.

`open_capture` streams: memory stays bounded, and each exchange is yielded as soon as it has its
number (`kernel.numbering`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol, Self, TypeAlias

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.conversation.limits import LIMITS as CONVERSATION_LIMITS
from kafkascope.analyzer.conversation.limits import ConversationLimits
from kafkascope.analyzer.exchanges.internal import FETCH, learn_from_log
from kafkascope.analyzer.exchanges.logs.joining import TOGETHER, Joining
from kafkascope.analyzer.exchanges.pairs import (
    Item,
    api_key_of,
    bytes_of,
    exchange_of,
    is_named,
    response_of,
)
from kafkascope.analyzer.model import Exchange, Origin
from kafkascope.analyzer.topics import CLUSTER_METADATA
from kafkascope.captures.errors import CaptureError, CutShort
from kafkascope.captures.formats.records import TLS_KEY_LOG
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.keylogs import EVERY, KeyLogFollower, follow_key_logs, read_key_logs
from kafkascope.captures.inputs.opening import FINGERPRINT_BYTES, fingerprint, is_live
from kafkascope.captures.inputs.spool import DEFAULT_BYTES, UNBOUNDED, Spool
from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import Chunk, Closed, Opened, Resolved, StreamEvent
from kafkascope.captures.packets.resolved import in_chunk
from kafkascope.captures.streams.streams import Assembly
from kafkascope.captures.tls.sources import KeySources
from kafkascope.extras import missing
from kafkascope.kernel.numbering import Hold, numbered, with_origins
from kafkascope.kernel.pairs import Pair, perhaps_about
from kafkascope.kernel.unacknowledged import Unacknowledged

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.logs.reader import LogReader
    from kafkascope.captures.streams.shares import Share
    from kafkascope.captures.tls.keys.keylog import KeyLog

PathLike: TypeAlias = str | os.PathLike[str]
Legs: TypeAlias = Literal["client", "both"]

CLIENT_LEG: Final = "kafkascope: client leg"
BROKER_LEG: Final = "kafkascope: broker leg"
"""Comment of the capture interface on which our proxy records the connection to the broker. The
client's connection carried the same requests, so these rows are left out by default."""


# Connections, requests in flight and held exchanges that are looked at for each exchange, to find
# out which numbers are known: 0.5 us of 40.
LOOKS: Final = 4
# Bytes that wait in reassembly and take as long to look at.
HELD_LOOK: Final = 1 << 12
# Bytes of the input after which numbers are given however long the look takes.
SETTLED_BYTES: Final = 8 << 20


class Listener(Protocol):
    """Receiver of all events of connections, besides the exchanges."""

    def event(self, event: StreamEvent) -> None:
        """Receive an event, before anything that follows it."""

    def exchange(self, exchange: Exchange) -> None:
        """Receive an exchange, before it is yielded."""


class OpenInput:
    """An open input. Iterate over `exchanges()` once; then `damage` and `source.statistics` tell
    what was wrong with it."""

    def __init__(
        self,
        source: Source,
        *,
        decode_as: Iterable[int] = (),
        legs: Legs = "client",
        log: KeyLog | KeyLogFollower | None = None,
        live: bool = False,
        zone: str = "",
        limits: ConversationLimits = CONVERSATION_LIMITS,
    ) -> None:
        """`log`: what TLS is decrypted with, a follower where it may grow meanwhile; key logs
        inside the input need no option. `live`: exchanges get the next number at once, because
        packets arrive while they are read. `zone`: of the times in request logs that name none."""
        self.source = source
        self.context = Context(decode_as, limits)
        self._follower: KeyLogFollower | None = None
        if isinstance(log, KeyLogFollower):
            self._follower, log = log, log.log
            source.patience = EVERY
        growing = self._follower is not None
        self.context.keys = KeySources(log, source.secrets, growing=growing)
        self.context.fingerprints = [fingerprint_of(name) for name in source.names]
        self.context.remarks = source.remarks
        self._conversations = Conversations(self.context)
        self.zone = zone
        self.first_file = 0
        """Index of the first input among those of `Context.fingerprints`."""
        self.logs: LogReader | None = None
        """Reads request logs of brokers, once it is known that there are some."""
        self._joining: Joining | None = None
        """Lines of request logs that a capture of the same minutes completes."""
        self.share: Share | None = None
        """The connections that are read; None: all."""
        self.live = live
        self._hold: Hold[Item] = Hold(bytes_of, lambda item: is_named(item, self.context.names))
        self._unacknowledged = Unacknowledged(response_of)
        self._unsettled = self._enough = self._settled_at = 0
        """Exchanges since the last look at what is unsettled, how many are enough for the next one,
        and how much was read at the last one."""
        self.legs = legs
        if legs == "both":
            source.reads_once = False
        self.assembly = Assembly(source)
        self.watch: Callable[[Opened | Closed], None] | None = None
        """Called at the beginning and end of connections, whatever they carry."""
        self.named: Callable[[Resolved], None] | None = None
        """Called with host names and their addresses."""
        self.listener: Listener | None = None
        self.look: Callable[[Item], None] | None = None
        """Called with each exchange as it is read, before it has a number."""
        self._plaintext: Spool | None = None
        self.damage: CutShort | None = None
        """The error that cut the input short, once it is known."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self.source.close()
        if self._follower is not None:
            self._follower.close()
        if self._plaintext is not None:
            self._plaintext.close()

    def plaintext(self, descriptor: int | None = None) -> Spool:
        """Return the store of bytes that came out of TLS, for who reads them again. Of files it
        keeps all, which is less than they hold; of input without end the last ones.
        `descriptor`: an open file to make it of, shared with another process."""
        if self._plaintext is None:
            capacity = UNBOUNDED if self.source.size else DEFAULT_BYTES
            self._plaintext = Spool(capacity, descriptor=descriptor)
        return self._plaintext

    def exchanges(self) -> Iterator[Exchange]:
        """Yield every exchange with its number: of files in the order of numbers, as soon as those
        before it are complete; live as it is complete, with the next number. Those in flight at the
        end of the capture come last.

        Never raises for damage: see `damage`.
        """
        for items in self.batches():
            yield from map(exchange_of, items)

    def batches(self) -> Iterator[list[Item]]:
        """Yield the same as they were read, for who seldom needs an object of one."""
        for block in self.blocks():
            for found in block:
                if ready := self._number(found):
                    yield ready
        if ready := self._finished():
            yield ready
        if self._joining is not None:
            if self.logs is not None:
                self.logs.ahead_ns = self._joining.ahead_ns
            # A log of a day beside a capture of a minute: not all of it in memory.
            alone = self._joining.rest()
            while some := list(islice(alone, TOGETHER)):
                yield self._numbered(self._hold.at_once(with_origins(some)))

    def in_flight(self) -> list[Exchange]:
        """Return the exchanges that come when reading ends, also after ctrl+c in `exchanges`:
        without a response, or of connections that waited for secrets until then."""
        return list(map(exchange_of, self._finished()))

    def blocks(self) -> Iterator[Iterator[list[Item]]]:
        """Yield, block by block, the exchanges that few packets complete, without numbers; those in
        flight at the end are left (`rest`). For who reads a `share`: may raise
        `NeedsSingleProcess`."""
        if self.share is None and (texts := self._texts()):
            if len(texts) == len(self.source.names):
                yield from self._logged(texts)
                return
            assert self.logs is not None
            self._joining = Joining(self.logs.exchanges(texts))
        follower = self._follower
        self.context.direct = self.listener is None
        try:
            share = self.share
            # Names in packets of no connection are for the first of those who share.
            named = self.named if share is None or share.first else None
            for block in self.assembly.batches(named, share):
                yield map(self._completed, block) if self.live else map(self._settled, block)
                if follower is not None and (seconds := follower.poll()) is not None:
                    yield iter([self._notify(self._conversations.retry_secrets(seconds))])
        except CutShort as error:
            self.damage = error

    def _texts(self) -> list[int]:
        """Return the inputs that are request logs, and let these be read."""
        found = self.source.text_inputs()
        if found and self.logs is None:
            from kafkascope.analyzer.exchanges.logs.reader import LogReader

            self.logs = LogReader(self.source, self.context, self.zone, self.first_file)
        return found

    def _logged(self, texts: list[int]) -> Iterator[Iterator[list[Item]]]:
        assert self.logs is not None
        for found in self.logs.exchanges(texts):
            yield iter([self._notify(found)])
        if self.source.statistics.damage:
            self.damage = self.source.statistics.damage[0]

    def _settled(self, events: Iterable[StreamEvent]) -> list[Item]:
        # The statistics of a block are ahead of its events.
        now_ns = self.assembly.reassembler.time_ns
        return self._unacknowledged.passed(self._completed(events), now_ns)

    def _completed(self, events: Iterable[StreamEvent]) -> list[Item]:
        feed, both = self._conversations.feed, self.legs == "both"
        listener, named, watch = self.listener, self.named, self.watch
        out = self._notify(self._conversations.kernel_exchanges())
        for event in events:
            comment = event.connection.interface_comment
            if comment and not both and comment == BROKER_LEG:
                continue
            if type(event) is Chunk:
                if named is not None and not event.offset:
                    for each in in_chunk(event):
                        named(each)
            elif (
                watch is not None
                and isinstance(event, (Opened, Closed))
                and not event.connection.forwarded
            ):
                watch(event)
            if listener is not None:
                listener.event(event)
            if found := feed(event):
                out += self._notify(found)
        return out

    def _notify(self, found: Sequence[Item]) -> list[Item]:
        listener, look = self.listener, self.look
        if self._joining is not None:
            found = [self._joining.join(exchange_of(item)) for item in found]
        if listener is not None:
            for item in found:
                listener.exchange(exchange_of(item))
        if look is not None:
            for item in found:
                look(item)
        for item in perhaps_about(found, *CLUSTER_METADATA):
            if api_key_of(item) == FETCH and isinstance(item, (Exchange, Pair)):
                learn_from_log(exchange_of(item), self.context.names)
        return list(found)

    def rest(self) -> list[Item]:
        """Return the exchanges that the end of reading completes, without numbers: for who reads
        `blocks`."""
        if self._follower is not None:
            self._follower.finish()
        return self._unacknowledged.rest() + self._notify(self._conversations.finish())

    # --- numbers

    def _number(self, found: list[Item]) -> list[Item]:
        """Take exchanges; return those that have their number by then."""
        hold = self._hold
        pairs = with_origins(found)
        if self.live:
            return self._numbered(hold.at_once(pairs))
        self._unsettled += len(found)
        read = self.source.statistics.captured_bytes
        late = hold.add(pairs)
        if self._unsettled < self._enough and read - self._settled_at < SETTLED_BYTES:
            return self._numbered(late)
        first, begun = self.unsettled()
        ready = self._numbered(late + hold.settle(first, begun))
        self._unsettled, self._settled_at = 0, read
        looked_at = self.connections + len(begun) + len(hold)
        self._enough = looked_at // LOOKS + self.assembly.reassembler.held // HELD_LOOK
        return ready

    def unsettled(self) -> tuple[int, list[Origin]]:
        """Return the first packet in which an exchange may be found to begin yet, and the origins
        of those that have begun and are not complete. Takes as long as there are connections."""
        if self.logs is not None and self._joining is None:
            return self.logs.settled_ns, []
        first, begun = self._conversations.unsettled()
        begun += [Origin(*each.origin) for each in self._unacknowledged.items]
        return min(first, self.assembly.first_waiting), begun

    @property
    def connections(self) -> int:
        """Number of the connections that are open, as far as they matter."""
        return len(self._conversations if self.logs is None else self.logs.connections)

    def _numbered(self, found: list[tuple[int, Item]]) -> list[Item]:
        self.context.exchanges = self._hold.given
        return numbered(found)

    def _finished(self) -> list[Item]:
        """Return all that is held, and what the end of reading completes."""
        return self._number(self.rest()) + self._numbered(self._hold.finish())

    def holds(self, most: int) -> bool:
        """Return whether more than `most` bytes of memory wait for more bytes."""
        return self.context.buffered_bytes > most and self._conversations.held > most

    def key_log_errors(self) -> list[CaptureError]:
        """Return why key logs that are followed cannot be read by now, or those inside the capture
        cannot be used."""
        errors = [] if self._follower is None else self._follower.errors()
        if any(block.kind == TLS_KEY_LOG for block in self.source.secrets) and (
            text := missing("decrypting with the keys inside a capture")
        ):
            errors.append(CaptureError(text))
        return errors


def open_capture(
    paths: Iterable[PathLike],
    *,
    decode_as: Iterable[int] = (),
    legs: Legs = "client",
    spool: Spool | None = None,
    keylog: Iterable[PathLike] = (),
    grows: bool = False,
    zone: str = "",
) -> OpenInput:
    """Open files, folders, pipes or "-"; `NotACapture` or `NotAllowed` when that is not possible.

    `decode_as`: ports that carry Kafka, whatever the bytes look like. `spool` keeps input that
    cannot be read twice. `keylog`: paths of key logs, which are followed where packets arrive while
    they are read, or a file `grows`. `zone`: of the times in request logs that name none.
    """
    names = list(paths)
    live = grows or any(is_live(os.fspath(name)) for name in names)
    log = follow_key_logs(keylog) if live else read_key_logs(keylog)
    source = open_inputs(names, spool=spool)
    return OpenInput(source, decode_as=decode_as, legs=legs, log=log, live=live, zone=zone)


def fingerprint_of(name: str) -> bytes:
    """Return the identity of a file in exchange ids; independent of its path."""
    path = Path(name)
    try:
        if not path.is_file():
            return b"stream"
        with path.open("rb") as file:
            return fingerprint(file.read(FINGERPRINT_BYTES))
    except OSError:
        return b"stream"
