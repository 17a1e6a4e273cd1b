"""What the bytes of a TCP flow say: its messages as text, its exchanges as rows. No I/O, and
nothing of mitmproxy but the attributes of its flows."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

import orjson

from kafkascope.analyzer.bodies.dissection import dissect_request
from kafkascope.analyzer.exchanges.outcome import result
from kafkascope.analyzer.exchanges.row_json import json_of_row
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.model import Exchange, Request, Response, Side, Undecoded
from kafkascope.analyzer.render.cells import duration
from kafkascope.analyzer.render.exchange import exchange_lines
from kafkascope.analyzer.text import safe
from kafkascope.bridges.following import NOT_SEEN, TOKEN, ByteFollower, FollowedMessage
from kafkascope.captures.model import Connection, Endpoint
from kafkascope.dissectors.keyed import api_name

# Of one flow, the last ones, in as many bytes as messages.
KEPT_EXCHANGES: Final = 1000
# Of messages that can be shown decoded, of one flow; mitmproxy itself keeps all bytes.
KEPT_BYTES: Final = 32 * 1024 * 1024
# Exchanges of a flow in its metadata, the last ones: all of it is copied with each save.
SHOWN_PAIRS: Final = 200

UNANSWERED: Final = "so far"
SASL_TOKEN: Final = "SaslToken"


class Part(Protocol):
    """A message of a TCP flow: bytes as they were read, not a message of Kafka."""

    from_client: bool
    content: bytes
    timestamp: float


class Pair(NamedTuple):
    """An exchange, and which parts of the flow end its request and its response."""

    exchange: Exchange
    row: Row
    request_at: int | None
    response_at: int | None

    @property
    def line(self) -> str:
        """The exchange on one line."""
        row = self.row
        version = "" if row.api_version is None else f" v{row.api_version}"
        latency = "" if row.latency_ns is None else f" {duration(row.latency_ns)}"
        who = row.client_id or row.client_address
        return safe(
            f"{row.api or '?'}{version} {who} > {row.broker_address}{latency} {result(row)}"
        )

    def to_json(self) -> dict[str, Any]:
        """exchange/1, with the numbers of the parts."""
        members: dict[str, Any] = orjson.loads(json_of_row(self.row))
        members["tcp_messages"] = [self.request_at, self.response_at]
        return members


def _bytes_of(pair: Pair) -> int:
    sides = (pair.exchange.request, pair.exchange.response)
    return sum(len(side.frame.payload) for side in sides if side is not None)


class KafkaFlow:
    """The messages and exchanges of a flow, as far as its parts were taken."""

    def __init__(self, client: Endpoint, broker: Endpoint) -> None:
        self._follower = ByteFollower(client, broker)
        self._connection = Connection(0, client, broker, 0)
        self._taken = 0
        self._shown: OrderedDict[int, list[tuple[FollowedMessage, Exchange | None]]] = OrderedDict()
        """By part: what ends in it."""
        self._bytes = 0
        self._at: dict[tuple[Side, int], tuple[int, int]] = {}
        """Side and offset of a frame -> the part that it ends in, and its place among what ends
        there, until its exchange is complete."""
        self.pairs: deque[Pair] = deque(maxlen=KEPT_EXCHANGES)
        self._pair_bytes = 0
        self.is_kafka = False
        """A message was found."""

    def take(self, parts: Sequence[Part]) -> list[Pair]:
        """Take the parts that are new, and return the exchanges that they complete."""
        out: list[Pair] = []
        for at in range(self._taken, len(parts)):
            part = parts[at]
            if part.content:
                time_ns = int(part.timestamp * 1_000_000_000)
                events = self._follower.feed(int(not part.from_client), part.content, time_ns)
                out += self._record(at, *events)
        self._taken = len(parts)
        return out

    def close(self, time_ns: int) -> list[Pair]:
        """End the flow; return its pending exchanges."""
        return self._record(self._taken, *self._follower.close(time_ns))

    def _record(
        self, at: int, messages: list[FollowedMessage], exchanges: list[Exchange]
    ) -> list[Pair]:
        for message in messages:
            self.is_kafka = True
            shown = self._shown.setdefault(at, [])
            self._at[message.side, message.frame.offset] = at, len(shown)
            shown.append((message, None))
            self._bytes += len(message.frame.payload)
        while self._bytes > KEPT_BYTES and len(self._shown) > 1:
            _, gone = self._shown.popitem(last=False)
            self._bytes -= sum(len(message.frame.payload) for message, _ in gone)
        pairs = [self._pair(each) for each in exchanges]
        for pair in pairs:
            if len(self.pairs) == KEPT_EXCHANGES:
                self._pair_bytes -= _bytes_of(self.pairs.popleft())
            self.pairs.append(pair)
            self._pair_bytes += _bytes_of(pair)
        while self._pair_bytes > KEPT_BYTES and len(self.pairs) > 1:
            self._pair_bytes -= _bytes_of(self.pairs.popleft())
        return pairs

    def _pair(self, exchange: Exchange) -> Pair:
        return Pair(
            exchange,
            row_of(exchange, self._follower.context.names),
            self._place("request", exchange),
            self._place("response", exchange),
        )

    def _place(self, side: Side, exchange: Exchange) -> int | None:
        """The part that a message ends in, which shows its exchange from now on."""
        message = exchange.request if side == "request" else exchange.response
        if message is None:
            return None
        found = self._at.pop((side, message.frame.offset), None)
        if found is None:
            return None
        at, place = found
        shown = self._shown.get(at)
        if shown is not None and place < len(shown):
            shown[place] = shown[place][0], exchange
        return at

    # --- text

    def lines(self, part: int) -> Iterator[str]:
        """The messages that end in a part; secrets are masked."""
        for number, (message, exchange) in enumerate(self._shown.get(part, ())):
            if number:
                yield ""
            yield from self._message(message, exchange)

    def has(self, part: int) -> bool:
        """Whether a message ends in a part."""
        return part in self._shown

    def _message(self, message: FollowedMessage, exchange: Exchange | None) -> Iterator[str]:
        """What the exchange is, as far as it is known, and the message itself."""
        whole = exchange or self._unpaired(message)
        names = self._follower.context.names
        lines = exchange_lines(row_of(whole, names), whole, names, show_hex=False)
        wanted = True
        for line in lines:
            # A title, then a section for each side, with an empty line before it.
            if not line:
                continue
            if line.startswith(("request: ", "response: ")):
                wanted = line.startswith(message.side)
            if wanted:
                yield line.removeprefix("exchange 0: ")

    def _unpaired(self, message: FollowedMessage) -> Exchange:
        """A message of which the exchange is not known, or not yet."""
        side, frame, header, reason = message
        request = response = None
        undecoded: tuple[Undecoded, ...] = ()
        if side == "response":
            response = Response(frame, None, None)
        elif header is None:
            request = Request(frame, None, None)
        else:
            decoded, undecoded = dissect_request(frame, header)
            request = Request(frame, header, decoded)
        api = SASL_TOKEN if reason == TOKEN else ""
        if header is not None:
            api = api_name(header.api_key)
        return Exchange(
            number=0,
            id="",
            state="orphan" if side == "response" else "open",
            connection=self._connection,
            client=self._connection.a,
            broker=self._connection.b,
            api_key=None if header is None else header.api_key,
            api=api,
            api_version=None if header is None else header.api_version,
            correlation_id=None if header is None else header.correlation_id,
            client_id=None if header is None else header.client_id,
            request=request,
            response=response,
            reason=NOT_SEEN if side == "response" else UNANSWERED,
            undecoded=undecoded,
        )
