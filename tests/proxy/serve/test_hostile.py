"""Whatever clients send: a served capture answers or closes, says why, and goes on."""

import asyncio
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.session.session import Session
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.registry import APIS, Decoded, api_named, layout_of, write_layout
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.replay.peer import PeerError
from kafkascope.proxy.serve.broker import Broker, Library, NoResponse, Response
from kafkascope.proxy.serve.captured_cluster import CapturedCluster
from kafkascope.proxy.serve.cli import given_context as tls_of
from tests.kit.authority import Authority
from tests.kit.proxy import run, until
from tests.kit.served import library_of, serving
from tests.strategies import bodies


def _nothing(file: int, at: int, size: int) -> bytes:
    raise AssertionError("nothing is served here")


NAMES = sorted(
    Broker(CapturedCluster(TopicNames()), Library(Session(Context(), _nothing)), {}).handlers
)
GRACE_S = 0.02
"""Some requests may wait: for records, for other members."""


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[CapturedCluster, Library, dict[int, tuple[str, int]]]]:
    """What a broker answers from."""
    with library_of("libraries.pcap") as (model, library):
        yield model, library, {node: ("127.0.0.1", 9000 + node) for node in model.nodes}


def requests(name: str) -> st.SearchStrategy[Decoded]:
    api = api_named(name)
    versions = st.integers(api.versions.low, api.versions.high)

    def whole(version: int) -> st.SearchStrategy[Decoded]:
        layout = layout_of(f"{name}Request", version)
        return bodies(layout).map(
            lambda body: Decoded(name, version, {}, body, 0, 0, "", layout, layout)
        )

    return versions.flatmap(whole)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=settings().max_examples // 12)
@given(st.data())
def test_any_request_gets_an_answer_that_can_be_written(
    served: tuple[CapturedCluster, Library, dict[int, tuple[str, int]]],
    name: str,
    data: st.DataObject,
) -> None:
    key = api_named(name).key
    asked = data.draw(st.lists(requests(name), min_size=1, max_size=3))

    async def ask() -> None:
        broker = Broker(*served)
        for decoded in asked:
            version = decoded.version
            try:
                async with asyncio.timeout(GRACE_S):
                    answer = await broker.respond(key, version, "hostile", decoded)
            except (TimeoutError, NoResponse):
                continue
            assert isinstance(answer, Response)
            if answer.body is not None:
                write_layout(layout_of(f"{name}Response", version), answer.body)

    asyncio.run(ask())


FRAMES = st.one_of(
    st.binary(max_size=80),
    st.builds(lambda data: struct.pack(">i", len(data)) + data, st.binary(max_size=80)),
    st.builds(
        lambda key, version, data: struct.pack(">ihhi", len(data) + 8, key, version, 1) + data,
        st.sampled_from(sorted(APIS)),
        st.integers(0, 20),
        st.binary(max_size=60),
    ),
)


@settings(max_examples=settings().max_examples // 7)
@given(st.lists(FRAMES, min_size=1, max_size=12))
def test_garbage_is_answered_or_closed_and_nobody_else_suffers(frames: list[bytes]) -> None:
    async def use() -> None:
        async with serving("sasl-old.pcap") as served:
            good = await served.peer()
            for frame in frames:
                link = await served.link()
                link.send(frame)
                link.end()
                await link.ended()
            await served.works(good)

    run(use())


def announced(size: int) -> bytes:
    return struct.pack(">i", size)


async def test_a_request_that_does_not_arrive_ends() -> None:
    async with serving("libraries.pcap", limits=Limits(frame_s=0.2, idle_s=0.4)) as served:
        drip = await served.link()
        drip.send(announced(1000))
        for _ in range(5):
            drip.send(b"x")
            await asyncio.sleep(0.1)
        assert await drip.ended()
        await until(lambda: served.says("1000 bytes did not arrive in 0.2 s; closed"))
        assert await (await served.link()).ended()


async def test_memory_for_all_requests_together_is_bounded() -> None:
    limits = Limits(serve_buffer_bytes=250_000)
    async with serving("libraries.pcap", limits=limits) as served:
        links = [await served.link() for _ in range(4)]
        for link in links:
            link.send(announced(100_000))
            await asyncio.sleep(0.05)
        await until(lambda: served.says("no room for a request of 100000 bytes"))
        assert await links[2].ended()
        await served.works()
        for link in links:
            link.writer.close()
        # What they held is free again: a larger one has room, as soon as they are gone.
        for _ in range(1000):
            link = await served.link()
            link.send(announced(200_000) + b"\xff" * 200_000)
            await link.ended()
            if served.says("api key -1"):
                break
        else:
            raise AssertionError(served.told)


async def test_a_flood_of_connections_is_told_once_in_a_while() -> None:
    async with serving("libraries.pcap", limits=Limits(serve_connections=20)) as served:
        good = await served.peer()
        links = [await served.link() for _ in range(60)]
        await until(lambda: len([e for e in served.told if "more than 20 connections" in e]) == 2)
        await served.works(good)
        for link in links:
            link.writer.close()
        for _ in range(1000):
            late = await served.peer()
            try:
                await served.works(late)
                break
            except PeerError:
                await asyncio.sleep(0.05)
            finally:
                await late.close()
        else:
            raise AssertionError("there is no room for a client although others have left")


async def test_clients_that_speak_tls_get_it_and_others_a_line(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = tls_of(authority.issue("broker", "127.0.0.1"), None)

    async with serving("libraries.pcap", tls=context) as served:
        trusting = ssl.create_default_context(cafile=str(authority.certificate))
        good = await served.peer(tls=trusting)
        plain = await served.link()
        plain.send(announced(20) + bytes(20))
        await plain.ended()
        await until(lambda: served.says("TLS failed"))
        await served.works(good)
