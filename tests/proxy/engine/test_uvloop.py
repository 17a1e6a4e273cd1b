"""The same conversations on uvloop, which the command takes where it is installed: it reads on when
told to pause early, keeps views of what it could not send, and its transports are no asyncio ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: each.__name__[5:])
def test_a_conversation_on_uvloop(conversation: Callable[[], None]) -> None:
    conversation()


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
