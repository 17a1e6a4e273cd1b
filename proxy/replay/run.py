"""Sends the requests of a plan at their time and compares the responses."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import InitVar, dataclass
from functools import partial
from itertools import count
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.bodies.fetch_sessions import FETCH
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.session.session import Session
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.registry import APIS, Decoded, decode_response, write_layout
from kafkascope.proxy.replay import split
from kafkascope.proxy.replay.cluster import LiveCluster
from kafkascope.proxy.replay.compare import Comparison
from kafkascope.proxy.replay.outcome import Latencies, Outcome
from kafkascope.proxy.replay.peer import Peer, PeerError, Reach
from kafkascope.proxy.replay.plan import Plan, ReplayStep
from kafkascope.proxy.replay.remap import Remap
from kafkascope.proxy.replay.retries import MOVES_GROUPS, REPEATABLE, TRANSIENT, Retries
from kafkascope.proxy.replay.sessions import Sessions

# No failure: how the first JoinGroup of a member is answered (KIP-394).
MEMBER_ID_REQUIRED: Final = 79
MAKES_PARTITIONS: Final = frozenset({"CreateTopics", "CreatePartitions"})
# Node of the peer -> its answer to come.
Answers: TypeAlias = "dict[int, asyncio.Future[bytes]]"


@dataclass(eq=False)
class Replay:
    """One replay."""

    session: Session
    context: Context
    plan: Plan
    cluster: LiveCluster
    remap: Remap
    reach: Reach
    speed: float | None = 1.0
    """Factor of the original pace; None for as fast as responses come."""
    strict: InitVar[bool] = False
    report: Callable[[Exchange, str], None] = lambda exchange, text: None
    """Hears of each exchange, and what came of it."""

    def __post_init__(self, strict: bool) -> None:
        self._peers: dict[int, dict[int, Peer]] = {}
        """By the number of the captured connection, and by node."""
        self._fetching: dict[int, Sessions] = {}
        self._ids: dict[str, list[bytes]] = {}
        """Topic -> its ids in the capture."""
        self._left: Counter[int] = Counter()
        """Requests to come, by connection."""
        self._done: list[bool] = []
        self._prefix = 0
        """So many answers, by their rank, are here."""
        self._moved = asyncio.Event()
        self._in_flight = 0
        self._bytes = 0
        """Bytes of these exchanges."""
        self._beats = 0
        """Those among them that a JoinGroup must not overtake."""
        self._crash: Exception | None = None
        """What went wrong where nobody waits."""
        self._group: asyncio.TaskGroup
        spread = len(self.plan.nodes) > 1
        self.limits = self.reach.limits
        comparison = Comparison(
            strict, topic_name=self.context.names.get, spread=spread, limits=self.limits
        )
        self.outcome = Outcome(comparison)
        self._retries = Retries(comparison, self.remap)

    async def run(self) -> Outcome:
        """Send all requests; `PeerError` when the peer cannot be reached at all."""
        steps = self.plan.steps()
        self._done = [False] * sum(1 for step in steps if step.rank >= 0)
        for step in steps:
            self._left[self.session.columns["connection"][step.index]] += 1
        for topic_id, name in self.context.names.all().items():
            self._ids.setdefault(name, []).append(bytes(topic_id))
        self._pair(self._ids)
        begun, first = time.monotonic(), steps[0].time_ns if steps else 0
        try:
            async with asyncio.TaskGroup() as self._group:
                for step in steps:
                    # Read and decoded while answers are on their way.
                    exchange = self.session.exchange(step.index)
                    await self._until(step, begun, first)
                    await self._begin(step, exchange)
                while self._in_flight:
                    await self._wait()
        finally:
            self.outcome.seconds = time.monotonic() - begun
            self.outcome.remarks = self._retries.remarks
            peers = [peer for each in self._peers.values() for peer in each.values()]
            await asyncio.gather(*(peer.close() for peer in peers))
        return self.outcome

    def _pair(self, topics: Iterable[str]) -> None:
        for name in topics:
            live = self.cluster.topic_ids.get(name)
            if live is not None:
                for topic_id in self._ids.get(name, ()):
                    self.remap.topic_ids.learn(topic_id, live)

    async def _look_again(self, exchange: Exchange, response: Decoded, body: Body) -> None:
        """Ask for nodes, and for leaders and ids of the topics that an exchange is about."""
        request = _request(exchange)
        live_ids = self.remap.topic_ids
        about = split.topics(request.layout, request.body)
        for topic in split.topics(response.layout, body):
            about.add(topic if isinstance(topic, str) else live_ids.captured(bytes(topic)))
        names = self.context.names
        named = {each if isinstance(each, str) else names.get(bytes(each)) for each in about}
        # Of others a broker before 0.11 would make some: Metadata could not say then to leave it.
        known = (self.plan.partitions, self.plan.created, self.cluster.topics)
        topics = [each for each in named if each and any(each in some for some in known)]
        await self.cluster.refresh(topics)
        self._pair(topics)

    async def _until(self, step: ReplayStep, start: float, first: int) -> None:
        """Wait for the responses that the client had, and for its pace."""
        # With nothing on its way no response will come: a damaged capture may have it behind us.
        while (self._in_flight and self._prefix < step.after) or self._full:
            await self._wait()
        if self.speed is not None:
            due = start + (step.time_ns - first) / 1e9 / self.speed
            await asyncio.sleep(max(due - time.monotonic(), 0))

    @property
    def _full(self) -> bool:
        return (
            self._in_flight >= self.limits.in_flight or self._bytes >= self.limits.in_flight_bytes
        )

    async def _wait(self) -> None:
        if self._crash is None:
            self._moved.clear()
            await self._moved.wait()
        if self._crash is not None:
            raise self._crash

    def _finished(self, step: ReplayStep, exchange: Exchange) -> None:
        sessions = self._fetching.get(exchange.connection.number)
        if sessions is not None and exchange.api_key == FETCH:
            sessions.done(exchange.number, exchange.response_body)
        self._in_flight -= 1
        self._bytes -= _bytes_of(exchange)
        self._beats -= exchange.api in REPEATABLE
        if step.rank >= 0:
            self._done[step.rank] = True
            while self._prefix < len(self._done) and self._done[self._prefix]:
                self._prefix += 1
        self._moved.set()
        number = self.session.columns["connection"][step.index]
        self._left[number] -= 1
        if not self._left[number]:
            connection = self.session.connections[number].number
            self._fetching.pop(connection, None)
            for peer in self._peers.pop(connection, {}).values():
                self._group.create_task(peer.close())

    async def _begin(self, step: ReplayStep, exchange: Exchange) -> None:
        while self._beats and exchange.api in MOVES_GROUPS:
            # Another connection's: the broker might take this one first, and tell of a rebalance.
            await self._wait()
        self._in_flight += 1
        self._bytes += _bytes_of(exchange)
        self._beats += exchange.api in REPEATABLE
        sent = time.monotonic_ns()
        try:
            parts = await self._begun(exchange)
        except (PeerError, DissectError) as error:
            self._failed(exchange, str(error))
            parts = None
        if parts is None:
            self._finished(step, exchange)
        elif len(parts) == 1:
            # Nearly all: no task of their own.
            [(node, response)] = parts.items()
            response.add_done_callback(partial(self._on_response, step, exchange, sent, node))
        else:
            self._group.create_task(self._end(step, exchange, parts, sent))

    async def _begun(self, exchange: Exchange) -> Answers | None:
        """Send an exchange's request, where the target serves its version. Returns the responses to
        come, or None when there will be none."""
        if exchange.request is None or exchange.request.decoded is None or exchange.api_key is None:
            return None
        version = exchange.api_version or 0
        if not self.cluster.serves(exchange.api_key, version) and exchange.api != "ApiVersions":
            # Brokers answer ApiVersions of any version, and close the connection for all others.
            self.outcome.unserved += 1
            served = self.cluster.versions.get(exchange.api_key)
            now = "none" if served is None else f"{served[0]} to {served[1]}"
            self._note(exchange, "version", version, f"served: {now}")
            self.report(exchange, f"not sent: the target supports {now}")
            return None
        parts = await self._send(exchange, exchange.request.decoded)
        self.outcome.sent += 1
        if parts is None:
            self.outcome.comparison.same += 1
            self.report(exchange, "sent; no response expected")
        return parts

    def _on_response(
        self,
        step: ReplayStep,
        exchange: Exchange,
        sent: int,
        node: int,
        response: asyncio.Future[bytes],
    ) -> None:
        """Compare the response of one broker at once; what has to wait gets a task."""
        try:
            try:
                now = time.monotonic_ns()
                decoded, body = self._decoded(exchange, {node: response.result()})
                again = self._retries.turns(exchange, decoded, body)
                if again or exchange.api in MAKES_PARTITIONS:
                    self._group.create_task(self._end(step, exchange, {node: response}, sent))
                    return
                self._timed(exchange, now - sent)
                self._compare(exchange, decoded, body)
            except (PeerError, DissectError) as error:
                self._failed(exchange, str(error))
            self._finished(step, exchange)
        except Exception as error:
            # Nobody awaits a callback: the loop that sends has to hear of it.
            self._crash = error
            self._moved.set()

    async def _send(
        self, exchange: Exchange, decoded: Decoded, body: Body | None = None
    ) -> Answers | None:
        """Send each part to its broker. Returns the responses to come, or None when there will be
        none. `body`: in the peer's terms, where it is not the whole request."""
        if body is None:
            body = self.remap.request(decoded.layout, decoded.body)
        parts = await self._parts(exchange, decoded, body)
        answers: Answers = {}
        for node, part in parts.items():
            peer = await self._peer(exchange, node)
            payload = _payload(exchange, decoded, part)
            if exchange.state == "no-reply":
                peer.post(payload)
            else:
                answers[node] = peer.send(exchange.correlation_id or 0, payload)
            await peer.drain()
        return answers or None

    async def _parts(self, exchange: Exchange, decoded: Decoded, body: Body) -> dict[int, Body]:
        api = APIS.get(-1 if exchange.api_key is None else exchange.api_key)
        server = "node" if api is None else api.server
        layout = decoded.layout
        if server == "leader":
            if exchange.api_key == FETCH:
                sessions = self._fetching.setdefault(exchange.connection.number, Sessions())
                leaders = self.cluster.leaders
                return sessions.request(exchange.number, layout, body, leaders)
            parts = split.by_leader(layout, body, self.cluster.leaders.of)
        elif server in ("group", "transaction"):
            kind = int(server == "transaction")
            entity = "transactionalId" if kind else "groupId"
            keys = split.entities(layout, body, entity)
            nodes = {key: await self.cluster.coordinator(key, kind) for key in keys}
            parts = split.by_coordinator(layout, body, lambda key: nodes.get(key, -1), entity)
        elif server == "all" and len(self.plan.nodes) <= 1:
            parts = dict.fromkeys(self.cluster.nodes, body)
        elif server == "controller":
            parts = {self.cluster.controller: body}
        else:
            parts = {self._same_node(exchange): body}
        if len(parts) > 1 and -1 in parts and not any(parts[-1].values()):
            del parts[-1]
        return parts

    def _same_node(self, exchange: Exchange) -> int:
        node = self.context.nodes.node_at(str(exchange.broker), exchange.broker.port)
        return -1 if node is None else int(self.remap.nodes.live(node))

    async def _peer(self, exchange: Exchange, node: int) -> Peer:
        """The connection in place of a captured one, to a node; -1 or unknown: any."""
        peers = self._peers.setdefault(exchange.connection.number, {})
        peer = peers.get(node)
        if peer is None or peer.closed:
            address = self.cluster.nodes.get(node, self.cluster.bootstrap)
            peer = peers[node] = await Peer.open(*address, self.reach)
        return peer

    async def _end(self, step: ReplayStep, exchange: Exchange, parts: Answers, sent: int) -> None:
        try:
            settled: list[Body] = []
            layout: Layout | None = None
            for turn in count():
                decoded, body = await self._response(exchange, parts)
                layout = decoded.layout if layout is None else layout
                now = time.monotonic_ns()
                most = self._retries.turns(exchange, decoded, body)
                if turn >= most:
                    if turn:
                        self._retries.ended(exchange, decoded, body, well=not most)
                    break
                await asyncio.sleep(self.limits.pause_s)
                await self._look_again(exchange, decoded, body)
                sent = time.monotonic_ns()
                parts = await self._again(exchange, decoded, body, settled)
            if settled:
                if decoded.layout is not layout:
                    raise PeerError("the broker answered in different layouts")
                body = split.merged(decoded.layout, [*settled, body])
            self._timed(exchange, now - sent)
            if exchange.api in MAKES_PARTITIONS:
                await self._look_again(exchange, decoded, body)
                self._retries.changed()
            self._compare(exchange, decoded, body)
        except (PeerError, DissectError) as error:
            self._failed(exchange, str(error))
        finally:
            self._finished(step, exchange)

    def _timed(self, exchange: Exchange, took_ns: int) -> None:
        if exchange.latency_ns is not None:
            latencies = self.outcome.latencies.setdefault(
                exchange.api, Latencies(self.limits.latencies)
            )
            latencies.add(exchange.latency_ns, took_ns)

    async def _again(
        self, exchange: Exchange, response: Decoded, body: Body, settled: list[Body]
    ) -> Answers:
        """Send again; of a Produce only what failed, for the rest is in the log."""
        request = _request(exchange)
        if exchange.api == "Produce":
            failed = split.failed_partitions(response.layout, body, TRANSIENT)
            well, _ = split.parted(response.layout, body, failed)
            if well is not None:
                settled.append(well)
            live = self.remap.request(request.layout, request.body)
            _, rest = split.parted(request.layout, live, failed)
            if rest is not None:
                return await self._send(exchange, request, rest) or {}
        return await self._send(exchange, request) or {}

    async def _response(self, exchange: Exchange, parts: Answers) -> tuple[Decoded, Body]:
        # All of them, before the first that failed is raised.
        await asyncio.gather(*parts.values(), return_exceptions=True)
        return self._decoded(exchange, {node: each.result() for node, each in parts.items()})

    def _decoded(self, exchange: Exchange, payloads: dict[int, bytes]) -> tuple[Decoded, Body]:
        key, version = exchange.api_key or 0, exchange.api_version or 0
        found = [decode_response(each, key, version) for each in payloads.values()]
        sessions = self._fetching.get(exchange.connection.number) if key == FETCH else None
        if sessions is not None:
            for node, each in zip(payloads, found, strict=True):
                sessions.answered(exchange.number, node, each.body)
        if not found:
            raise PeerError("no answer")
        if len(found) == 1:
            return found[0], found[0].body
        if any(each.layout is not found[0].layout for each in found):
            raise PeerError("brokers answered in different layouts")
        return found[0], split.merged(found[0].layout, [each.body for each in found])

    def _compare(self, exchange: Exchange, decoded: Decoded, body: Body) -> None:
        captured = None if exchange.response is None else exchange.response.decoded
        if captured is None:
            self.outcome.unmatched += 1
            self.report(exchange, "answered; the capture has no response")
            return
        if captured.version != decoded.version or captured.layout is not decoded.layout:
            self._note(exchange, "version of the response", captured.version, decoded.version)
            return
        self.remap.learn(exchange.api, _request(exchange).body, captured.body, body)
        then = set(split.errors(captured.layout, captured.body))
        now = set(split.errors(decoded.layout, body))
        if then & TRANSIENT and now <= {MEMBER_ID_REQUIRED}:
            self.outcome.settled += 1
            self.report(exchange, "answered; the captured broker was not ready")
            return
        live = self.remap.response(decoded.layout, body)
        about = exchange.api, exchange.api_version or 0, exchange.number
        found = self.outcome.comparison.compare(*about, captured.layout, captured.body, live)
        self.report(exchange, f"{len(found)} differences" if found else "same")

    def _failed(self, exchange: Exchange, why: str) -> None:
        self.outcome.unanswered += 1
        if exchange.response is not None:
            self._note(exchange, "answer", "yes", why)
        self.report(exchange, why)

    def _note(self, exchange: Exchange, path: str, then: Any, now: Any) -> None:
        version = exchange.api_version or 0
        self.outcome.comparison.note(exchange.api, version, exchange.number, path, then, now)


def _request(exchange: Exchange) -> Decoded:
    assert exchange.request is not None
    assert exchange.request.decoded is not None
    return exchange.request.decoded


def _bytes_of(exchange: Exchange) -> int:
    sides = (exchange.request, exchange.response)
    return sum(side.frame.size for side in sides if side is not None)


def _payload(exchange: Exchange, decoded: Decoded, body: Body) -> bytes:
    """The bytes of a request: the captured ones where nothing in them changes."""
    if body is decoded.body and exchange.request is not None:
        return exchange.request.frame.payload
    header = write_layout(decoded.header_layout, decoded.header)
    return header + write_layout(decoded.layout, body)
