"""Capture files to exchanges: the only module that joins captures and conversations.

`open_capture` streams: memory stays bounded, and each exchange is yielded as soon as it is
complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Protocol, Self, TypeAlias

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.exchanges.internal import FETCH, learn_from_log
from kafkascope.analyzer.model import Exchange
from kafkascope.captures import CaptureError, CutShort, Source, Spool, open_inputs
from kafkascope.captures.inputs.keylogs import (
    EVERY,
    KeyLogFollower,
    follow_key_logs,
    read_key_logs,
)
from kafkascope.captures.inputs.opening import is_live
from kafkascope.captures.inputs.spool import DEFAULT_BYTES, UNBOUNDED
from kafkascope.captures.model import Chunk, Closed, Opened, Resolved, StreamEvent
from kafkascope.captures.packets.resolved import in_chunk
from kafkascope.captures.streams.streams import batches
from kafkascope.captures.tls.sources import TLS_KEY_LOG, KeySources
from kafkascope.extras import missing

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.seen_schemas import SeenSchemas
    from kafkascope.captures.tls.keys.keylog import KeyLog

PathLike: TypeAlias = str | os.PathLike[str]
Legs: TypeAlias = Literal["client", "both"]

CLIENT_LEG: Final = "kafkascope: client leg"
BROKER_LEG: Final = "kafkascope: broker leg"
"""Comment of the capture interface on which our proxy records the connection to the broker. The
client's connection carried the same requests, so these rows are left out by default."""


FINGERPRINT_BYTES: Final = 64 * 1024
"""Bytes at the head of a file: times and sequence numbers of the first packets make it unique."""


class Listener(Protocol):
    """Receiver of all events of connections, besides the exchanges."""

    def event(self, event: StreamEvent) -> None:
        """Receive an event, before anything that follows it."""

    def exchange(self, exchange: Exchange) -> None:
        """Receive an exchange, before it is yielded."""


class Capture:
    """An open input. Iterate over `exchanges()` once; then `damage` and `source.statistics` tell
    what was wrong with it."""

    def __init__(
        self,
        source: Source,
        *,
        decode_as: Iterable[int] = (),
        legs: Legs = "client",
        log: KeyLog | KeyLogFollower | None = None,
    ) -> None:
        """`log`: what TLS is decrypted with, a follower where it may grow meanwhile; key logs
        inside the input need no option."""
        self.source = source
        self.context = Context(decode_as)
        self._follower: KeyLogFollower | None = None
        if isinstance(log, KeyLogFollower):
            self._follower, log = log, log.log
            source.patience = EVERY
        growing = self._follower is not None
        self.context.keys = KeySources(log, source.secrets, growing=growing)
        self.context.fingerprints = [fingerprint(name) for name in source.names]
        self.context.remarks = source.remarks
        self._conversations = Conversations(self.context)
        self.legs = legs
        self.watch: Callable[[Opened | Closed], None] | None = None
        """Called at the beginning and end of connections, whatever they carry."""
        self.named: Callable[[Resolved], None] | None = None
        """Called with host names and their addresses."""
        self.listener: Listener | None = None
        self.schemas: SeenSchemas | None = None
        """What takes note of schemas, where they are wanted while they are read."""
        self._plaintext: Spool | None = None
        self.damage: CutShort | None = None
        """The error that cut the input short, once it is known."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release files and temporary space."""
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
        """Yield every exchange when it is complete; those in flight at the end of the capture come
        last.

        Never raises for damage: see `damage`.
        """
        feed = self._conversations.feed
        names = self.context.names
        both = self.legs == "both"
        listener, named, watch = self.listener, self.named, self.watch
        schemas = self.schemas
        follower = self._follower
        try:
            for batch in batches(self.source, named=named):
                for event in batch:
                    comment = event.connection.interface_comment
                    if comment and not both and comment == BROKER_LEG:
                        continue
                    if type(event) is Chunk:
                        if named is not None and not event.offset:
                            for each in in_chunk(event):
                                named(each)
                    elif watch is not None and isinstance(event, (Opened, Closed)):
                        watch(event)
                    if listener is not None:
                        listener.event(event)
                    for exchange in feed(event):
                        if listener is not None:
                            listener.exchange(exchange)
                        if schemas is not None:
                            schemas.exchange(exchange)
                        if exchange.api_key == FETCH:
                            learn_from_log(exchange, names)
                        yield exchange
                if follower is not None and (seconds := follower.poll()) is not None:
                    yield from self._late(self._conversations.look_again(seconds))
        except CutShort as error:
            self.damage = error
        yield from self.in_flight()

    def feed(self, event: StreamEvent) -> list[Exchange]:
        """Return the exchanges that an event completes, for who reads events otherwise."""
        found = self._conversations.feed(event)
        for exchange in found:
            if exchange.api_key == FETCH:
                learn_from_log(exchange, self.context.names)
        return found

    def holds(self, most: int) -> bool:
        """Return whether more than `most` bytes of memory wait for more bytes."""
        return self.context.waiting > most and self._conversations.held > most

    def in_flight(self) -> list[Exchange]:
        """Return the exchanges that come when reading ends, also after ctrl+c in `exchanges`:
        without a response, or of connections that waited for secrets until then."""
        if self._follower is not None:
            self._follower.finish()
        return self._late(self._conversations.finish())

    def _late(self, found: list[Exchange]) -> list[Exchange]:
        """Tell exchanges that no event completed."""
        for exchange in found:
            if self.listener is not None:
                self.listener.exchange(exchange)
            if exchange.api_key == FETCH:
                learn_from_log(exchange, self.context.names)
        return found

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
) -> Capture:
    """Open files, folders, pipes or "-"; `NotACapture` or `NotAllowed` when that is not possible.

    `decode_as`: ports that carry Kafka, whatever the bytes look like. `spool` keeps input that
    cannot be read twice. `keylog`: paths of key logs, which are followed where packets arrive while
    they are read, or a file `grows`.
    """
    names = list(paths)
    live = grows or any(is_live(os.fspath(name)) for name in names)
    log = follow_key_logs(keylog) if live else read_key_logs(keylog)
    return Capture(open_inputs(names, spool=spool), decode_as=decode_as, legs=legs, log=log)


def fingerprint(name: str) -> bytes:
    """Return the identity of a file in exchange ids; independent of its path."""
    path = Path(name)
    try:
        if not path.is_file():
            return b"stream"
        with path.open("rb") as file:
            return blake2b(file.read(FINGERPRINT_BYTES), digest_size=16).digest()
    except OSError:
        return b"stream"
