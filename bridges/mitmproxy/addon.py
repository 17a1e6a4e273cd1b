"""The add-on: hooks, options and commands of mitmproxy. I/O without decisions.

tcp_message ─► relay: addresses, versions ─► KafkaFlow: messages, pairs ─► metadata, marks, lines
                  └► ListenerPlan ─► modes of mitmproxy
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from mitmproxy import command, contentviews, ctx, exceptions, tcp, types
from mitmproxy.flow import Flow
from mitmproxy.log import ALERT

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.language import Filter, compile_filter
from kafkascope.bridges.mitmproxy.brokers import ListenerPlan
from kafkascope.bridges.mitmproxy.flows import SHOWN_PAIRS, KafkaFlow, Pair
from kafkascope.bridges.mitmproxy.views import KafkaView
from kafkascope.captures.model import Endpoint
from kafkascope.proxy.engine.destinations import Destinations
from kafkascope.proxy.hub import Hub
from kafkascope.proxy.relay.connection import Connection
from kafkascope.proxy.relay.endpoints import Endpoints, VersionLimiter
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, Send

MARK: Final = ":mag:"
PAIRS: Final = "kafka"
"""Metadata: the exchanges of a flow."""
MATCHES: Final = "kafka-filter"
"""Metadata: how many exchanges of a flow match the filter."""
# mitmproxy opens listeners in the background; a response with their addresses waits for it.
OPENING_S: Final = 10.0
SCHEMES: Final = ("tcp", "tls")

_log = logging.getLogger("kafkascope.mitmproxy")


class Cluster:
    """What the flows of one mode of the user share: the brokers behind it."""

    def __init__(self, mode: Any, advertised: str) -> None:
        host = mode.custom_listen_host
        if host is None:
            host = ctx.options.listen_host or ""
        self.plan = ListenerPlan(mode.scheme, host, advertised)
        self.hub = Hub()
        self.hub.endpoints = Endpoints(self.plan)
        self.hub.versions = VersionLimiter()
        self.destinations = Destinations()


class Relayed:
    """The relay of one flow."""

    def __init__(self, cluster: Cluster, flow: tcp.TCPFlow) -> None:
        self.cluster = cluster
        client, server = flow.client_conn, flow.server_conn
        self._connection = Connection(
            cluster.hub, next(cluster.hub.numbers), _end(client.peername), _end(server.peername)
        )
        self._connection.context.advertise_host = client.sockname[0] if client.sockname else ""
        self.own: deque[bytes] = deque()
        """Responses of our own that mitmproxy is to send; they come by here as the broker's."""

    def pass_on(self, part: tcp.TCPMessage) -> list[bytes]:
        """Put into a part what goes on, and return what goes back in its place."""
        if not part.from_client and self.own and part.content == self.own[0]:
            self.own.popleft()
            return []
        side = CLIENT if part.from_client else BROKER
        actions = self._connection.feed(side, part.content, time.time_ns())
        if actions is None:
            return []
        sent = [each for each in actions if isinstance(each, Send)]
        part.content = b"".join(each.data for each in sent if each.side != side)
        back = [bytes(each.data) for each in sent if each.side == side]
        self.own.extend(back)
        return back


class KafkaAddon:
    """Kafka in the TCP flows of mitmproxy."""

    def __init__(self) -> None:
        self._flows: WeakKeyDictionary[Any, KafkaFlow] = WeakKeyDictionary()
        self._relayed: WeakKeyDictionary[Any, Relayed] = WeakKeyDictionary()
        self._clusters: dict[str, Cluster] = {}
        """By the modes of the user."""
        self._made: dict[str, Cluster] = {}
        """By the modes that were added for brokers."""
        self._added: set[str] = set()
        """All of these modes that there ever were."""
        self._opening = asyncio.Lock()
        self._filter: Filter | None = None
        self._view = KafkaView(self._known)

    # --- life

    def load(self, loader: Any) -> None:
        """Declare the options, and the content view."""
        loader.add_option("kafka_rewrite", bool, True, REWRITE)
        loader.add_option("kafka_advertise", str, "", ADVERTISE)
        loader.add_option("kafka_filter", str, "", FILTER)
        loader.add_option("kafka_lines", bool, True, LINES)
        contentviews.add(self._view)  # type: ignore[arg-type]  # by its attributes

    def done(self) -> None:
        """Take the content view back, where that is possible."""
        if hasattr(contentviews, "views"):  # 11 refuses two of one name, 12 replaces the first
            contentviews.remove(self._view)  # type: ignore[arg-type, attr-defined, unused-ignore]

    def configure(self, updated: set[str]) -> None:
        """Take over a filter."""
        if "kafka_filter" in updated:
            self._filter = _compiled(ctx.options.kafka_filter)
            for flow, found in tuple(self._flows.items()):
                self._judge_anew(flow, found)

    # --- flows

    async def tcp_message(self, flow: tcp.TCPFlow) -> None:
        """Look at new bytes: replace addresses in them, then read them."""
        relayed = self._relay(flow)
        if relayed is not None:
            for response in relayed.pass_on(flow.messages[-1]):
                ctx.master.commands.call("inject.tcp", flow, True, response)
            await self._open_listeners(relayed.cluster)
        found = self._flow(flow)
        self._publish(flow, found.take(flow.messages))

    def tcp_end(self, flow: tcp.TCPFlow) -> None:
        """Report requests that are pending at the end of the connection."""
        found = self._flow(flow)
        self._publish(flow, found.take(flow.messages) + found.close(time.time_ns()))
        self._relayed.pop(flow, None)

    def tcp_error(self, flow: tcp.TCPFlow) -> None:
        """Tell the same."""
        self.tcp_end(flow)

    def _known(self, flow: Any) -> KafkaFlow | None:
        """What the parts of a flow say, of flows that were read from a file, too."""
        if not isinstance(flow, tcp.TCPFlow):
            return None
        found = self._flow(flow)
        self._publish(flow, found.take(flow.messages))
        return found

    def _flow(self, flow: tcp.TCPFlow) -> KafkaFlow:
        found = self._flows.get(flow)
        if found is None:
            server = flow.server_conn
            ends = _end(flow.client_conn.peername), _end(server.peername or server.address)
            found = self._flows[flow] = KafkaFlow(*ends)
        return found

    def _publish(self, flow: tcp.TCPFlow, pairs: list[Pair]) -> None:
        if not pairs:
            return
        kept = flow.metadata.setdefault(PAIRS, [])
        kept += [each.to_json() for each in pairs[-SHOWN_PAIRS:]]
        del kept[:-SHOWN_PAIRS]
        matching = [each for each in pairs if self._matches(each)]
        if self._filter is not None and matching:
            flow.marked = MARK
            flow.metadata[MATCHES] = flow.metadata.get(MATCHES, 0) + len(matching)
        if ctx.options.kafka_lines:
            for each in matching:
                _log.info("%s", each.line)

    def _matches(self, pair: Pair) -> bool:
        return self._filter is None or self._filter(pair.row, pair.exchange)

    def _judge_anew(self, flow: Any, found: KafkaFlow) -> None:
        if flow.metadata.pop(MATCHES, 0) and flow.marked == MARK:
            flow.marked = ""
        matching = sum(self._matches(each) for each in found.pairs)
        if self._filter is not None and matching:
            flow.marked = MARK
            flow.metadata[MATCHES] = matching

    # --- commands

    @command.command("kafkascope.filter")
    def filter(self, expression: str) -> None:
        """Show only flows with an exchange that matches, and mark them: a filter of kafkascope
        such as `api == Produce and failed`. An empty one shows all flows again."""
        try:
            ctx.options.update(kafka_filter=expression)
        except exceptions.OptionsError as error:
            raise exceptions.CommandError(str(error)) from None
        if "view_filter" in ctx.options:
            ctx.options.update(view_filter=f"~meta {MATCHES}" if expression else None)
        if expression:
            count = sum(MATCHES in flow.metadata for flow in self._flows)
            logging.log(ALERT, f"{count} of {len(self._flows)} TCP flows match {expression}")

    @command.command("kafkascope.exchanges")
    def exchanges(self, flows: Sequence[Flow]) -> types.Data:
        """List the exchanges of flows that match the filter, one a line."""
        found = [self._known(flow) for flow in flows]
        rows = [
            [str(at), each.line]
            for at, known in enumerate(found)
            if known is not None
            for each in known.pairs
            if self._matches(each)
        ]
        return [["flow", "exchange"], *rows]  # type: ignore[return-value]

    # --- addresses of brokers

    def _relay(self, flow: tcp.TCPFlow) -> Relayed | None:
        """The relay of a live flow whose addresses have to be replaced."""
        found = self._relayed.get(flow)
        if found is None and flow.live and len(flow.messages) == 1 and ctx.options.kafka_rewrite:
            cluster = self._cluster(flow)
            if cluster is not None:
                found = self._relayed[flow] = Relayed(cluster, flow)
        return found

    def _cluster(self, flow: tcp.TCPFlow) -> Cluster | None:
        mode: Any = flow.client_conn.proxy_mode
        if mode.type_name != "reverse" or mode.scheme not in SCHEMES:
            return None  # clients reach brokers by themselves, and come to us
        made = self._made.get(mode.full_spec)
        if made is not None:
            return made
        cluster = self._clusters.get(mode.full_spec)
        if cluster is None:
            cluster = Cluster(mode, ctx.options.kafka_advertise)
            self._clusters[mode.full_spec] = cluster
        if flow.server_conn.peername:
            cluster.destinations.trust(flow.server_conn.peername[0])
        return cluster

    async def _open_listeners(self, cluster: Cluster) -> None:
        """Make mitmproxy listen for the known brokers, before their addresses reach a client."""
        wanted = cluster.plan.specs()
        if all(self._made.get(each) is cluster for each in wanted):
            return
        async with self._opening:
            wanted = cluster.plan.specs()
            others = {spec: each for spec, each in self._made.items() if each is not cluster}
            self._made = others | dict.fromkeys(wanted, cluster)
            users = [spec for spec in ctx.options.mode if spec not in self._added]
            self._added |= self._made.keys()
            ctx.options.update(mode=[*users, *self._made])
            await self._until_open()

    async def _until_open(self) -> None:
        server = ctx.master.addons.get("proxyserver")
        end = asyncio.get_running_loop().time() + OPENING_S
        while asyncio.get_running_loop().time() < end:
            running = {each.mode.full_spec for each in server.servers if each.is_running}
            if running >= set(self._made):
                return
            await asyncio.sleep(0.01)
        _log.warning("mitmproxy does not listen for all brokers: clients may not reach some")

    async def server_connect(self, data: Any) -> None:
        """Refuse to connect where a response leads that no broker should name."""
        cluster = self._made.get(data.client.proxy_mode.full_spec)
        if cluster is None or data.server.address is None:
            return
        host, port = data.server.address
        loop = asyncio.get_running_loop()
        try:
            infos = await loop.getaddrinfo(host, port, type=2)
        except OSError as error:
            data.server.error = f"{host}: {error}"
            return
        for info in infos:
            why = cluster.destinations.refusal(str(info[4][0]))
            if why is not None:
                data.server.error = f"a broker advertises {host}:{port}: {why}"
                return
        if data.client.proxy_mode.scheme == "tcp":
            # Judged is what is connected to: a name may lead elsewhere the next time.
            data.server.address = (str(infos[0][4][0]), port)


def _compiled(text: str) -> Filter | None:
    if not text.strip():
        return None
    try:
        return compile_filter(text)
    except FilterError as error:
        raise exceptions.OptionsError(f"kafka_filter: {error}") from None


def _end(name: Any) -> Endpoint:
    return Endpoint(name[0], name[1]) if name else Endpoint("0.0.0.0", 0)


REWRITE: Final = "Replace broker addresses by addresses of this proxy (reverse:tcp:// and tls://)."
ADVERTISE: Final = "Host in the addresses for clients (default: the host they connect to)."
FILTER: Final = "Display filter of kafkascope: exchanges to log and flows to mark."
LINES: Final = "Log one line for each exchange."
