"""Responds to requests: from the captured cluster and from state, else as the captured broker did
to the most similar request of the same API, else with an error. Everything but sockets."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from itertools import islice
from statistics import median
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.session.session import Session
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.codec.walk import changed, fitted, leaves
from kafkascope.dissectors.embedded.masking import masked
from kafkascope.dissectors.layout import Layout, Slot
from kafkascope.dissectors.registry import APIS, Decoded, layout_of
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.serve.captured_cluster import CapturedCluster
from kafkascope.proxy.serve.cluster import ServedCluster
from kafkascope.proxy.serve.coordinators.consumers import ConsumerGroups
from kafkascope.proxy.serve.coordinators.groups import Groups
from kafkascope.proxy.serve.coordinators.producers import Offsets, Producers
from kafkascope.proxy.serve.coordinators.shares import ShareGroups
from kafkascope.proxy.serve.partitions import Partitions
from kafkascope.proxy.serve.request import Code, Handler, MemoryBudget, Request, listed, respond

# Share of a request's values that have to be the same; below it the response is to something else.
NEAR: Final = 0.5
# Values in a line for people, and characters of one.
VALUES: Final = 3
CHARACTERS: Final = 40

# A field's path without indexes, and its value.
Said = tuple[str, Any]


class Match(NamedTuple):
    """A captured exchange, and how similar its request is."""

    exchange: Exchange
    likeness: float
    """0 to 1."""
    only_here: list[Said]
    """What the request says and the captured one does not."""
    only_there: list[Said]
    renamed: dict[tuple[str, str], str]
    """(kind of name, name in the captured request) -> the name that stands there now."""


class Library:
    """Exchanges with a response, by API."""

    def __init__(self, session: Session, limits: Limits = LIMITS) -> None:
        self._session = session
        self._limits = limits
        self._indexes: dict[int, list[int]] = {}
        self._values: dict[int, dict[Said, str]] = {}
        self._value_count = 0
        self._latencies: dict[int, deque[int]] = {}

    def add(self, exchange: Exchange) -> None:
        """Add an exchange to the library, and to its session if it may be wanted."""
        if exchange.request is None or exchange.request.decoded is None:
            return
        if exchange.response is None or exchange.response.decoded is None:
            return
        if exchange.api_key is None or exchange.response.decoded.version != exchange.api_version:
            return
        if exchange.latency_ns is not None:
            known = self._latencies.setdefault(
                exchange.api_key, deque(maxlen=self._limits.captured_exchanges)
            )
            known.append(exchange.latency_ns)
        found = self._indexes.setdefault(exchange.api_key, [])
        most, most_values = self._limits.captured_exchanges, self._limits.captured_values
        if not found or (len(found) < most and self._value_count < most_values):
            decoded = exchange.request.decoded
            values = _values(decoded.layout, decoded.body, self._limits)
            index = self._session.add(exchange)
            found.append(index)
            self._values[index] = values
            self._value_count += len(values)

    def latency_s(self, key: int) -> float:
        known = self._latencies.get(key)
        return median(known) / 1e9 if known else 0.0

    def nearest(self, key: int, version: int, layout: Layout, body: Body) -> Match | None:
        """The captured exchange with the most similar request. Of several the one of the same
        version, then the first."""
        values = _values(layout, body, self._limits)
        best: tuple[float, bool, int] | None = None
        for index in self._indexes.get(key, ()):
            had = self._values[index]
            common = len(values.keys() & had.keys())
            whole = len(values) + len(had) - common
            likeness = common / whole if whole else 1.0
            same = self._session.columns["api_version"][index] == version
            place = (likeness, same, -index)
            if best is None or place > best:
                best = place
        if best is None:
            return None
        had = self._values[-best[2]]
        here = [each for each in values if each not in had]
        there = [each for each in had if each not in values]
        renamed = _renamed(here, there, values)
        return Match(self._session.exchange(-best[2]), best[0], here, there, renamed)


def kind_of(slot: Slot) -> str:
    """What a value names: the same in request and response, whatever the fields are called."""
    return slot.field.entity or slot.field.subject or slot.name


def _renamed(
    here: list[Said], there: list[Said], kinds: dict[Said, str]
) -> dict[tuple[str, str], str]:
    """Return (kind, name there) -> name here, paired by field path and order."""
    renamed = {}
    for path in {path for path, _ in here}:
        ours = [each for each in here if each[0] == path]
        theirs = [value for other, value in there if other == path]
        for said, old in zip(ours, theirs, strict=False):
            if isinstance(said[1], str) and isinstance(old, str):
                renamed[kinds[said], old] = said[1]
    return renamed


def brief(values: Iterable[Said]) -> str:
    """Some of these values as text: name=orders, num_partitions=3."""
    short = []
    for path, value in values:
        if value in (None, "", b"", "[]"):
            continue
        text = value.hex() if isinstance(value, bytes) else str(value)
        text = text if len(text) <= CHARACTERS else text[: CHARACTERS - 1] + "…"
        short.append(f"{path.rpartition('.')[2]}={text}")
        if len(short) > VALUES:
            short[-1] = "…"
            break
    return ", ".join(short) or "nothing more"


def _values(layout: Layout, body: Body, limits: Limits) -> dict[Said, str]:
    """The fields and values of a body in wire order, arrays flattened, each with what it names.
    Volatile ones are left out, secrets are asterisks."""
    found: dict[Said, str] = {}
    for leaf in islice(leaves(layout, masked(layout, body)), limits.compared_values):
        if leaf.slot.field.volatile or leaf.slot.wire is None:
            continue
        path = ".".join(part for part in leaf.path.split(".") if not part.isdigit())
        value = leaf.value
        if isinstance(value, list | dict):
            value = str(value)
        found[path, value] = kind_of(leaf.slot)
    return found


# They wait for something that happens here, not as long as they waited in the capture.
PATIENT: Final = frozenset({"Fetch", "ShareFetch", "JoinGroup", "SyncGroup"})


FULL: Final = "{} v{} refused: state of clients exceeds {} MB"


class Response(NamedTuple):
    """What to send back."""

    body: Body | None
    """None: nothing, for acks=0."""
    note: str = ""
    """A line for whoever watches; empty when the response is the one to be expected."""


class NoResponse(Exception):
    """There is no response: the connection is closed. One line for people."""


class Broker:
    """A captured cluster that answers. `places`: node -> the address where it listens now."""

    def __init__(
        self,
        model: CapturedCluster,
        library: Library,
        places: dict[int, tuple[str, int]],
        *,
        original_pace: bool = False,
        login: bool = False,
    ) -> None:
        self.model = model
        self.places = places
        self._library = library
        self._original_pace = original_pace
        budget = self._budget = MemoryBudget(model.limits)
        groups = self._groups = Groups(budget)
        consumers = self._consumers = ConsumerGroups(model, budget)
        partitions = Partitions(model)
        shares = self._shares = ShareGroups(model, partitions, budget)
        offsets = self._offsets = Offsets(model, groups, consumers, budget)
        producers = Producers(partitions, offsets, budget)
        cluster = ServedCluster(model, places, partitions.gone)
        self.handlers: dict[str, Handler] = {
            "ApiVersions": self._api_versions,
            "Metadata": cluster.metadata,
            "DescribeCluster": cluster.describe,
            "DescribeTopicPartitions": cluster.describe_partitions,
            "FindCoordinator": cluster.find_coordinator,
            "CreateTopics": cluster.create,
            "DeleteTopics": cluster.delete,
            "Fetch": partitions.fetch,
            "ListOffsets": partitions.list_offsets,
            "OffsetForLeaderEpoch": partitions.leader_epoch,
            "Produce": partitions.produce,
            "DescribeGroups": self._describe_groups,
            "ListGroups": self._list_groups,
            "JoinGroup": groups.join,
            "SyncGroup": groups.sync,
            "Heartbeat": groups.heartbeat,
            "LeaveGroup": groups.leave,
            "ConsumerGroupHeartbeat": consumers.heartbeat,
            "ConsumerGroupDescribe": consumers.describe,
            "ShareGroupHeartbeat": shares.heartbeat,
            "ShareGroupDescribe": shares.describe,
            "ShareFetch": shares.fetch,
            "ShareAcknowledge": shares.acknowledge,
            "OffsetCommit": offsets.commit,
            "OffsetFetch": offsets.fetch,
            "TxnOffsetCommit": offsets.commit_in_transaction,
            "InitProducerId": producers.init,
            "AddPartitionsToTxn": producers.add_partitions,
            "AddOffsetsToTxn": producers.add_offsets,
            "EndTxn": producers.end,
        }
        """APIs that are answered from the model and from state. All others from captured responses;
        those of SASL belong to the connection."""
        self.versions = self._offered(login)

    async def respond(
        self, key: int, version: int, client_id: str | None, decoded: Decoded
    ) -> Response:
        api = APIS[key]
        handler = self.handlers.get(api.name)
        if handler is None:
            return await self._captured(key, version, decoded)
        if self._original_pace and api.name not in PATIENT:
            await asyncio.sleep(min(self._library.latency_s(key), self.model.limits.wait_s))
        refusals = self._budget.refusals
        body = await respond(handler, api.name, Request(version, decoded.body, client_id))
        note = ""
        if self._budget.refusals > refusals:
            note = FULL.format(api.name, version, self.model.limits.state_bytes >> 20)
        return Response(body, note)

    async def _captured(self, key: int, version: int, decoded: Decoded) -> Response:
        name = APIS[key].name
        match = self._library.nearest(key, version, decoded.layout, decoded.body)
        layout = layout_of(f"{name}Response", version)
        if match is None:
            error = self.error(key, version, Code.UNKNOWN_SERVER_ERROR)
            sentence = f"{name} v{version}: the capture has no response of this API"
            if error is None:
                raise NoResponse(sentence)
            return Response(error, f"{sentence}; answered UNKNOWN_SERVER_ERROR")
        if self._original_pace:
            latency_s = (match.exchange.latency_ns or 0) / 1e9
            await asyncio.sleep(min(latency_s, self.model.limits.wait_s))
        response = match.exchange.response
        assert response is not None
        assert response.decoded is not None

        def change(slot: Slot, value: Any, around: Any) -> Any:
            if isinstance(value, str):
                value = match.renamed.get((kind_of(slot), value), value)
            return self._with_our_address(slot, value, around)

        body = fitted(layout, changed(response.decoded.layout, response.body or {}, change))
        return Response(body, _note(name, version, match))

    def _with_our_address(self, slot: Slot, value: Any, around: Any) -> Any:
        if slot.field.endpoint and isinstance(around, dict):
            place = self.places.get(around.get("node_id", around.get("broker_id")) or 0)
            if place is not None:
                return place[1] if isinstance(value, int) else place[0]
        return value

    def error(self, key: int, version: int, code: int) -> Body | None:
        """A response that is nothing but an error; None when the API cannot say one at its top."""
        layout = layout_of(f"{APIS[key].name}Response", version)
        names = [slot.name for slot in layout.body.slots if slot.field.enum == "ErrorCode"]
        return fitted(layout, dict.fromkeys(names, code)) if names else None

    # --- what is offered

    def _offered(self, login: bool) -> dict[int, tuple[int, int]]:
        """API key -> versions: what the captured broker served, as far as we can respond. Where the
        capture does not tell: what its clients used, and whatever needs no captured response."""
        offered = {}
        for key, api in APIS.items():
            handled = api.name in self.handlers or api.name in LOGIN
            used = self.model.used_versions.get(key, set())
            known = self.model.versions.get(key)
            if login and api.name in LOGIN:
                known = known or (api.versions.low, api.versions.high)
            if known is None and (used or (handled and not self.model.versions)):
                all_of_it = api.versions.low, api.versions.high
                known = all_of_it if handled else (min(used), max(used))
            if known is None or not (handled or used):
                continue
            low, high = max(known[0], api.versions.low), min(known[1], api.versions.high)
            if low <= high:
                offered[key] = low, high
        return offered

    async def _api_versions(self, request: Request) -> Body:
        keys = [
            {"api_key": key, "min_version": low, "max_version": high}
            for key, (low, high) in self.versions.items()
        ]
        return {"api_keys": keys, **self.model.features}

    # --- groups of all kinds

    async def _list_groups(self, request: Request) -> Body:
        living = [*self._groups.listed(), *self._consumers.listed(), *self._shares.listed()]
        names = {each["group_id"] for each in living}
        offsets = (name for name in self._offsets.groups() if name not in names)
        resting = [listed(name, "consumer", "Empty", "classic") for name in offsets]
        found = [*living, *resting]
        for field, name in (("states_filter", "group_state"), ("types_filter", "group_type")):
            allowed = {each.lower() for each in request.body.get(field, ())}
            found = [each for each in found if not allowed or each[name].lower() in allowed]
        return {"groups": found}

    async def _describe_groups(self, request: Request) -> Body:
        """Describe groups; those that only have committed offsets are empty, as in ListGroups."""
        response, resting = await self._groups.describe(request), self._offsets.groups()
        for each in response["groups"]:
            if each["group_state"] == "Dead" and each["group_id"] in resting:
                each |= {"group_state": "Empty", "protocol_type": "consumer"}
        return response


# APIs of the connection, not of the cluster.
LOGIN: Final = frozenset({"SaslHandshake", "SaslAuthenticate"})


def _note(name: str, version: int, match: Match) -> str:
    if match.likeness >= NEAR:
        return ""
    return (
        f"{name} v{version} ({brief(match.only_here)}): the capture has nothing like it; answered"
        f" as exchange {match.exchange.number} ({brief(match.only_there)}),"
        f" {match.likeness:.0%} alike"
    )
