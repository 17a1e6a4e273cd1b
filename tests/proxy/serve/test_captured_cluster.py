"""What a capture tells of its cluster, whatever it holds."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.codec.walk import fitted
from kafkascope.dissectors.registry import api_named, layout_of, write_layout
from kafkascope.proxy.serve.broker import Broker, Library
from kafkascope.proxy.serve.captured_cluster import CapturedCluster
from kafkascope.proxy.serve.request import Request
from tests.kit.samples import SAMPLES
from tests.kit.served import library_of
from tests.strategies import bodies


def served(model: CapturedCluster) -> None:
    """Ask for everything that there is."""
    model.finish()
    broker = Broker(model, Library(None), dict.fromkeys(model.nodes, ("h", 1)))

    async def ask(name: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
        told = await broker.handlers[name](Request(version, body))
        layout = layout_of(f"{name}Response", version)
        write_layout(layout, fitted(layout, told))
        return told

    async def all_of_it() -> None:
        told = await ask("Metadata", 12, {"topics": None})
        for topic in told["topics"]:
            for part in topic["partitions"]:
                number = part["partition_index"]
                for version, offset in ((11, 0), (11, 1 << 40), (0, 0)):
                    wish = {"partition": number, "fetch_offset": offset}
                    wish["partition_max_bytes"] = 1 << 20
                    topics = [{"topic": topic["name"], "partitions": [wish]}]
                    body = {"topics": topics, "max_wait_ms": 0, "isolation_level": version % 2}
                    await ask("Fetch", version, body)
                wish = {"partition_index": number, "timestamp": -1}
                await ask(
                    "ListOffsets", 7, {"topics": [{"name": topic["name"], "partitions": [wish]}]}
                )
        await ask("ApiVersions", 3, {})
        for group in model.offsets:
            await ask("OffsetFetch", 7, {"group_id": group, "topics": None})

    asyncio.run(all_of_it())


def exchanges(name: str) -> st.SearchStrategy[Any]:
    api = api_named(name)

    def whole(version: int) -> st.SearchStrategy[Any]:
        sides = [bodies(layout_of(f"{name}{side}", version)) for side in ("Request", "Response")]
        return st.tuples(*sides).map(
            lambda pair: SimpleNamespace(
                api=name,
                api_key=api.key,
                api_version=version,
                request_body=pair[0],
                response_body=pair[1],
            )
        )

    return st.integers(api.versions.low, api.versions.high).flatmap(whole)


@settings(max_examples=settings().max_examples // 2)
@given(st.lists(st.sampled_from(sorted(CapturedCluster.readers)).flatmap(exchanges), max_size=4))
def test_any_exchanges_make_a_cluster_that_answers(found: list[Any]) -> None:
    model = CapturedCluster(TopicNames())
    for each in found:
        model.add(each)
    served(model)


@pytest.mark.parametrize("share", [0.01, 0.13, 0.5, 0.77, 0.999])
def test_a_capture_that_is_cut_is_served_as_far_as_it_goes(share, tmp_path):
    whole = (SAMPLES / "libraries.pcap").read_bytes()
    path = tmp_path / "cut.pcap"
    path.write_bytes(whole[: int(len(whole) * share)])
    with library_of(path) as (model, _):
        served(model)
