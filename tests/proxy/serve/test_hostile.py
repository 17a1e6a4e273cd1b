"""Whatever clients send: a served capture answers or closes, says why, and goes on."""

from __future__ import annotations

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
from tests.kit.proxy import PATIENCE_S, run, until
from tests.kit.served import library_of, peer_of, serving
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
    model, library, capture = library_of("libraries.pcap")
    yield model, library, {node: ("127.0.0.1", 9000 + node) for node in model.nodes}
    capture.close()


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
        async with serving("sasl-old.pcap") as (host, port, told):
            good = await peer_of(host, port)
            for frame in frames:
                reader, writer = await asyncio.open_connection(host, port)
                writer.write(frame)
                writer.write_eof()
                await ended(reader)
                writer.close()
            assert (await good.ask("ApiVersions", 0, {}))["api_keys"]
            assert not any("internal error" in line for line in told), told
            await good.close()

    run(use())


async def ended(reader: asyncio.StreamReader) -> bool:
    """The connection is closed and nothing was said. What was not read any more resets it."""
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
    except ConnectionError:
        return True


def announced(size: int) -> bytes:
    return struct.pack(">i", size)


async def test_a_request_that_does_not_arrive_ends() -> None:
    async with serving("libraries.pcap", limits=Limits(frame_s=0.2, idle_s=0.4)) as (
        host,
        port,
        told,
    ):
        slow, drip = await asyncio.open_connection(host, port)
        drip.write(announced(1000))
        for _ in range(5):
            drip.write(b"x")
            await asyncio.sleep(0.1)
        assert await ended(slow)
        await until(lambda: any("1000 bytes did not arrive in 0.2 s; closed" in e for e in told))
        silent, writer = await asyncio.open_connection(host, port)
        assert await ended(silent)
        drip.close()
        writer.close()


async def test_memory_for_all_requests_together_is_bounded() -> None:
    limits = Limits(serve_buffer_bytes=250_000)
    async with serving("libraries.pcap", limits=limits) as (host, port, told):
        links = [await asyncio.open_connection(host, port) for _ in range(4)]
        for _, writer in links:
            writer.write(announced(100_000))
            await asyncio.sleep(0.05)
        await until(lambda: any("no room for a request of 100000 bytes" in e for e in told))
        assert await ended(links[2][0])
        good = await peer_of(host, port)
        assert (await good.ask("ApiVersions", 0, {}))["api_keys"]
        await good.close()
        for _, writer in links:
            writer.close()
        # What they held is free again: a larger one has room, as soon as they are gone.
        for _ in range(1000):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(announced(200_000) + b"\xff" * 200_000)
            await ended(reader)
            writer.close()
            if any("api key -1" in e for e in told):
                break
        else:
            raise AssertionError(told)


async def test_a_flood_of_connections_is_told_once_in_a_while() -> None:
    async with serving("libraries.pcap", limits=Limits(serve_connections=20)) as (
        host,
        port,
        told,
    ):
        good = await peer_of(host, port)
        links = [await asyncio.open_connection(host, port) for _ in range(60)]
        await until(lambda: len([e for e in told if "more than 20 connections" in e]) == 2)
        assert (await good.ask("ApiVersions", 0, {}))["api_keys"]
        for _, writer in links:
            writer.close()
        for _ in range(1000):
            late = await peer_of(host, port)
            try:
                assert (await late.ask("ApiVersions", 0, {}))["api_keys"]
                break
            except PeerError:
                await asyncio.sleep(0.05)
            finally:
                await late.close()
        else:
            raise AssertionError("there is no room for a client although others have left")
        await good.close()


async def test_clients_that_speak_tls_get_it_and_others_a_line(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = tls_of(authority.issue("broker", "127.0.0.1"), None)

    async with serving("libraries.pcap", tls=context) as (host, port, told):
        trusting = ssl.create_default_context(cafile=str(authority.certificate))
        good = await peer_of(host, port, tls=trusting)
        assert (await good.ask("ApiVersions", 0, {}))["api_keys"]
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(announced(20) + bytes(20))
        await ended(reader)
        writer.close()
        await until(lambda: any("TLS failed" in line for line in told))
        await good.close()
