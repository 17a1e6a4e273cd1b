"""Responds to requests: from the captured cluster and from state, else as the captured broker did
to the most similar request, else with an error. Everything but sockets."""

from __future__ import annotations

import asyncio
from typing import Any, Final, NamedTuple

from kafkascope.dissectors.codec.fitting import fitted
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.codec.walk import changed
from kafkascope.dissectors.layout import Slot
from kafkascope.dissectors.registry import APIS, Decoded, layout_of
from kafkascope.proxy.serve.captured_cluster import CapturedCluster
from kafkascope.proxy.serve.cluster import ServedCluster
from kafkascope.proxy.serve.coordinators.consumers import ConsumerGroups
from kafkascope.proxy.serve.coordinators.groups import Groups
from kafkascope.proxy.serve.coordinators.memory_budget import STATE_LIMIT, MemoryBudget
from kafkascope.proxy.serve.coordinators.offsets import Offsets
from kafkascope.proxy.serve.coordinators.producers import Producers
from kafkascope.proxy.serve.coordinators.shares import ShareGroups
from kafkascope.proxy.serve.library import NEAR, Library, Match, brief, kind_of
from kafkascope.proxy.serve.partitions import Partitions
from kafkascope.proxy.serve.request import LONGEST_WAIT_S, Code, Handler, Request

PATIENT: Final = frozenset({"Fetch", "ShareFetch", "JoinGroup", "SyncGroup"})
"""They wait for something that happens here, not as long as they waited in the capture."""


FULL: Final = f"{{}} v{{}} refused: state of clients exceeds {STATE_LIMIT >> 20} MB"


class Response(NamedTuple):
    """What to send back."""

    version: int
    """Of the body."""
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
        budget = self._budget = MemoryBudget()
        self._groups = Groups(budget)
        self._consumers = ConsumerGroups(model, budget)
        partitions = Partitions(model)
        self._shares = ShareGroups(model, partitions, budget)
        self._offsets = Offsets(model, self._groups, self._consumers, budget)
        self.handlers: dict[str, Handler] = {
            "ApiVersions": self._api_versions,
            "DescribeGroups": self._describe_groups,
            "ListGroups": self._list_groups,
            **ServedCluster(model, places, partitions.gone).handlers(),
            **partitions.handlers(),
            **self._groups.handlers(),
            **self._consumers.handlers(),
            **self._shares.handlers(),
            **self._offsets.handlers(),
            **Producers(partitions, self._offsets, budget).handlers(),
        }
        """APIs that are answered from the model and from state. All others from captured responses;
        those of SASL belong to the connection."""
        self.versions = self._offered(login)

    async def respond(
        self, key: int, version: int, client_id: str | None, decoded: Decoded
    ) -> Response:
        """The response to a request; `NoResponse` when there is none."""
        api = APIS[key]
        handler = self.handlers.get(api.name)
        if handler is None:
            return await self._captured(key, version, decoded)
        if self._original_pace and api.name not in PATIENT:
            await asyncio.sleep(min(self._library.latency_s(key), LONGEST_WAIT_S))
        refusals = self._budget.refusals
        body = await handler(Request(version, decoded.body, client_id))
        layout = layout_of(f"{api.name}Response", version)
        note = FULL.format(api.name, version) if self._budget.refusals > refusals else ""
        return Response(version, None if body is None else fitted(layout, body), note)

    async def _captured(self, key: int, version: int, decoded: Decoded) -> Response:
        name = APIS[key].name
        match = self._library.nearest(key, version, decoded.layout, decoded.body)
        layout = layout_of(f"{name}Response", version)
        if match is None:
            error = self.error(key, version, Code.UNKNOWN_SERVER_ERROR)
            said = f"{name} v{version}: the capture has no response of this API"
            if error is None:
                raise NoResponse(said)
            return Response(version, error, f"{said}; answered UNKNOWN_SERVER_ERROR")
        if self._original_pace:
            await asyncio.sleep(min((match.exchange.latency_ns or 0) / 1e9, LONGEST_WAIT_S))
        response = match.exchange.response
        assert response is not None
        assert response.decoded is not None

        def change(slot: Slot, value: Any, around: Any) -> Any:
            if isinstance(value, str):
                value = match.renamed.get((kind_of(slot), value), value)
            return self._moved(slot, value, around)

        body = fitted(layout, changed(response.decoded.layout, response.body or {}, change))
        return Response(version, body, _note(name, version, match))

    def _moved(self, slot: Slot, value: Any, around: Any) -> Any:
        """Addresses of captured nodes become ours."""
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
            asked = self.model.asked.get(key, set())
            known = self.model.versions.get(key)
            if login and api.name in LOGIN:
                known = known or (api.versions.low, api.versions.high)
            if known is None and (asked or (handled and not self.model.versions)):
                all_of_it = api.versions.low, api.versions.high
                known = all_of_it if handled else (min(asked), max(asked))
            if known is None or not (handled or asked):
                continue
            low, high = max(known[0], api.versions.low), min(known[1], api.versions.high)
            if low <= high:
                offered[key] = low, high
        return offered

    async def _api_versions(self, request: Request) -> Body:
        return {"error_code": 0, "api_keys": self.offer(), **self.model.features}

    def offer(self) -> list[Body]:
        """What is offered, as ApiVersions tells it."""
        return [
            {"api_key": key, "min_version": low, "max_version": high}
            for key, (low, high) in self.versions.items()
        ]

    # --- groups of all kinds

    async def _describe_groups(self, request: Request) -> Body:
        return {"groups": [self._groups.described(name) for name in request.body["groups"]]}

    async def _list_groups(self, request: Request) -> Body:
        living = [*self._groups.listed(), *self._consumers.listed(), *self._shares.listed()]
        names = {each["group_id"] for each in living}
        resting = [
            {
                "group_id": name,
                "protocol_type": "consumer",
                "group_state": "Empty",
                "group_type": "classic",
            }
            for name in self._offsets.groups()
            if name not in names
        ]
        found = [*living, *resting]
        for field, name in (("states_filter", "group_state"), ("types_filter", "group_type")):
            wanted = {each.lower() for each in request.body.get(field, ())}
            found = [each for each in found if not wanted or each[name].lower() in wanted]
        return {"error_code": 0, "groups": found}


LOGIN: Final = frozenset({"SaslHandshake", "SaslAuthenticate"})
"""APIs of the connection, not of the cluster."""


def _note(name: str, version: int, match: Match) -> str:
    if match.likeness >= NEAR:
        return ""
    return (
        f"{name} v{version} ({brief(match.only_here)}): the capture has nothing like it; answered"
        f" as exchange {match.exchange.number} ({brief(match.only_there)}),"
        f" {match.likeness:.0%} alike"
    )
