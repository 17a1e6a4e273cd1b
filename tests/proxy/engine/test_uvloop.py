"""The same conversations on uvloop, which the command takes where it is installed: it reads on when
told to pause early, keeps views of what it could not send, and its transports are no asyncio ones.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkascope.proxy.engine.stream import LAYER, READ_BYTES, Arena, Stream
from tests.matrix import each_nth
from tests.proxy.engine import test_hostile, test_server, test_tls

uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed here")

CONVERSATIONS: list[Callable[[], None]] = [
    test_server.test_a_client_gets_the_brokers_answer,
    test_server.test_a_proxy_can_be_started_again,
    test_server.test_stop_lets_an_answer_come_that_is_on_its_way,
    test_server.test_upstreams_are_tried_in_order,
    test_server.test_both_directions_in_bulk_at_once_do_not_stall,
    test_server.test_every_byte_arrives_before_a_slow_reader,
    test_server.test_a_client_that_does_not_take_our_answers_is_not_read,
    test_server.test_a_consumer_that_stops_reading_costs_a_buffer_at_most,
    test_server.test_half_close_of_a_client_lets_the_answer_through,
    test_server.test_a_reset_of_the_broker_is_a_reset_for_the_client,
    test_server.test_a_client_that_leaves_a_black_hole_is_noticed,
    test_hostile.test_a_broker_that_goes_down_and_comes_back,
]


def run(coroutine: Any) -> Any:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(asyncio.wait_for(coroutine, 300))


@pytest.fixture(autouse=True)
def _on_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (test_server, test_hostile, test_tls):
        monkeypatch.setattr(module, "run", run)


@pytest.mark.parametrize(
    "conversation", each_nth(CONVERSATIONS, 3), ids=lambda each: each.__name__[5:]
)
def test_a_conversation_on_uvloop(conversation: Callable[[], None]) -> None:
    conversation()


@pytest.mark.parametrize("started", [False, True])
def test_what_comes_before_anybody_listens_is_a_read_at_most(started: bool) -> None:
    got: list[int] = []

    async def main() -> None:
        arena, streams = Arena(), []

        def made(stream: Stream) -> None:
            stream.stop(LAYER)  # as long as there is no broker
            if started:
                stream.start(lambda data: got.append(len(data)))
            streams.append(stream)

        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Stream(arena, made), "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()) as client:
            client.setblocking(False)
            sent = 0
            for _ in range(50):
                while True:
                    try:
                        sent += client.send(bytes(1 << 20))
                    except BlockingIOError:
                        break
                await asyncio.sleep(0.01)
            (stream,) = streams
            assert sent > READ_BYTES
            assert sum(got) + sum(map(len, stream._early)) <= READ_BYTES
            if not started:
                stream.start(lambda data: got.append(len(data)))
            stream.allow(LAYER)
            client.setblocking(True)
            client.shutdown(socket.SHUT_WR)
            await stream.ended
            assert sum(got) == sent
            stream.abort()
        server.close()

    run(main())


def test_tls_on_uvloop(tmp_path: Path) -> None:
    test_tls.test_a_generated_certificate_is_trusted_with_our_ca(tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("rule", test_server.RULES)
def test_a_gigabyte_of_requests_on_uvloop(rule: str) -> None:
    test_server.test_a_gigabyte_against_a_rule_that_waits(rule)


@pytest.mark.soak
@pytest.mark.parametrize("rule", test_server.ANSWERS)
def test_a_gigabyte_of_answers_on_uvloop(rule: str) -> None:
    test_server.test_a_gigabyte_of_answers_against_a_rule_that_waits(rule)
