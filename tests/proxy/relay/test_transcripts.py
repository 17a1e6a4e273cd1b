"""A connection as transcripts: `>>` what happens, `<<` what must follow, and nothing else."""

import struct
from collections.abc import Awaitable

import pytest

from kafkascope.dissectors.registry import decode_response
from kafkascope.proxy.rules.faults import parse_fault
from kafkascope.proxy.rules.verdicts import (
    BROKER,
    CLIENT,
    Close,
    Delay,
    Drop,
    End,
    Forward,
    Hold,
    Read,
    Replace,
    Respond,
)
from tests.kit import proxy as kit
from tests.kit.wire import framed
from tests.proxy.relay.playbook import (
    Closed,
    Decided,
    Ends,
    FromBroker,
    FromClient,
    Passes,
    Playbook,
    Recorded,
    RecordedUpstream,
    Released,
    TimePasses,
    ask,
    to_broker,
    to_client,
    wait,
)


def hidden(whole: bytes, secret: bytes) -> bytes:
    """A frame as it may be recorded."""
    return whole.replace(secret, b"*" * len(secret))


# --- the transcripts themselves


def test_a_playbook_fails_when_something_else_follows() -> None:
    with pytest.raises(AssertionError, match=r"(?s)client sends Heartbeat v4 1 .*broker gets"):
        Playbook() >> FromClient(kit.beat()) << to_client(kit.beat())


def test_a_playbook_fails_when_something_is_not_named() -> None:
    with pytest.raises(AssertionError, match="nothing more"):
        bool(Playbook() >> FromClient(kit.beat()))
    with pytest.raises(AssertionError, match="nothing more"):
        Playbook() >> FromClient(kit.beat()) >> FromBroker(kit.pulse())


def test_a_playbook_fails_when_nothing_follows() -> None:
    with pytest.raises(AssertionError, match="got:\n << nothing more"):
        Playbook() >> FromClient(b"\0\0") << to_broker(b"\0\0")


# --- passing


def test_a_request_and_its_response_pass() -> None:
    assert Playbook() >> Passes(CLIENT, kit.beat()) >> Passes(BROKER, kit.pulse())


def test_pipelined_requests_pass_and_so_do_their_responses() -> None:
    book = Playbook()
    assert (
        book
        >> Passes(CLIENT, kit.beat(1) + kit.beat(2) + kit.beat(3))
        >> Passes(BROKER, kit.pulse(1))
        >> Passes(BROKER, kit.pulse(2) + kit.pulse(3))
    )
    assert not book.bench.relay.busy


def test_a_head_waits_until_it_can_be_read_and_the_rest_does_not() -> None:
    asked = kit.beat()
    assert (
        Playbook()
        >> FromClient(asked[:3])
        >> FromClient(asked[3:10])
        >> FromClient(asked[10:20])
        << to_broker(asked[:20])
        >> Passes(CLIENT, asked[20:])
    )


def test_a_produce_without_acks_has_no_response() -> None:
    assert (
        Playbook()
        >> Passes(
            CLIENT, kit.produce(acks=0, correlation_id=1) + kit.produce(acks=1, correlation_id=2)
        )
        >> Passes(BROKER, kit.response(kit.PRODUCE, 9, correlation_id=2))
    )


def test_an_unknown_api_passes_unchanged() -> None:
    asked = framed(struct.pack(">hhih", 900, 3, 5, -1) + b"whatever")
    told = framed(struct.pack(">i", 5) + b"something")
    assert Playbook(recording=True) >> Passes(CLIENT, asked) >> Passes(BROKER, told)


def test_garbage_passes_from_where_it_begins() -> None:
    garbage = b"\xff\xff\xff\xffno request begins with a negative size"
    assert (
        Playbook()
        >> Passes(CLIENT, kit.beat())
        >> Passes(CLIENT, garbage)
        >> Passes(CLIENT, b"more of it")
        >> Passes(BROKER, b"and of the other side")
    )


def test_another_protocol_at_the_start_ends_the_connection() -> None:
    assert (
        Playbook()
        >> FromClient(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n")
        << End(CLIENT, "fin")
        << End(BROKER, "fin")
        >> FromBroker(b"too late")
    )


# --- ends


def test_the_end_of_a_side_is_told_to_the_other() -> None:
    assert (
        Playbook()
        >> Passes(CLIENT, kit.beat())
        >> Ends(CLIENT)
        << End(BROKER, "half")
        >> Passes(BROKER, kit.pulse())
        >> Ends(BROKER)
        << End(CLIENT, "half")
    )


def test_an_end_within_a_frame_that_passes_is_an_end() -> None:
    assert Playbook() >> Passes(CLIENT, kit.beat()[:24]) >> Ends(CLIENT) << End(BROKER, "half")


def test_an_end_within_a_head_lets_its_bytes_go_first() -> None:
    assert (
        Playbook()
        >> FromClient(kit.beat()[:7])
        >> Ends(CLIENT)
        << to_broker(kit.beat()[:7])
        << End(BROKER, "half")
    )


def test_an_end_within_a_frame_that_is_kept_lets_its_bytes_go_first() -> None:
    assert (
        Playbook(kit.Always(CLIENT, Drop()))
        >> FromClient(kit.beat()[:24])
        >> Ends(CLIENT)
        << to_broker(kit.beat()[:24])
        << End(BROKER, "half")
    )


# --- rules


@pytest.mark.parametrize("look", ["head", "whole"])
def test_a_delay_stops_reading_until_its_time_is_over(look: str) -> None:
    assert (
        Playbook(kit.Always(CLIENT, Delay(5), look=look))
        >> FromClient(kit.beat(1) + kit.beat(2))
        << Read(CLIENT, False)
        << wait(5)
        >> TimePasses()
        << to_broker(kit.beat(1) + kit.beat(2))
        << Read(CLIENT, True)
    )


def test_a_delay_of_one_direction_leaves_the_other_alone() -> None:
    assert (
        Playbook(kit.Always(BROKER, Delay(5), look="head"))
        >> Passes(CLIENT, kit.beat(1))
        >> FromBroker(kit.pulse(1))
        << Read(BROKER, False)
        << wait(5)
        >> Passes(CLIENT, kit.beat(2))
        >> TimePasses()
        << to_client(kit.pulse(1))
        << Read(BROKER, True)
    )


def test_an_end_comes_after_what_is_delayed() -> None:
    assert (
        Playbook(kit.Always(CLIENT, Delay(5), look="head"))
        >> FromClient(kit.beat())
        << Read(CLIENT, False)
        << wait(5)
        >> Ends(CLIENT)
        >> TimePasses()
        << to_broker(kit.beat())
        << End(BROKER, "half")
        << Read(CLIENT, True)
    )


def test_a_dropped_request_never_reaches_the_broker() -> None:
    assert (
        Playbook(kit.Always(CLIENT, Drop()))
        >> FromClient(kit.beat(1) + kit.beat(2))
        << to_broker(kit.beat(2))
        >> Passes(BROKER, kit.pulse(2))
    )


def test_a_dropped_response_leaves_the_next_one_alone() -> None:
    assert (
        Playbook(kit.Always(BROKER, Drop(), look="head"))
        >> Passes(CLIENT, kit.beat(1) + kit.beat(2))
        >> FromBroker(kit.pulse(1) + kit.pulse(2))
        << to_client(kit.pulse(2))
    )


def test_a_replaced_request_goes_in_place_of_the_other() -> None:
    other = kit.beat(group_id="other")
    assert (
        Playbook(kit.Always(CLIENT, Replace(other[4:])), recording=True)
        >> FromClient(kit.beat())
        << to_broker(other)
        << Recorded(CLIENT, kit.beat(), "client test")
        << RecordedUpstream(CLIENT, other, "rule: rule [10.0.0.1:5000 1]")
    )


def test_a_response_of_ours_waits_for_those_before_it() -> None:
    assert (
        Playbook(kit.Always(CLIENT, None, Respond(kit.pulse(2, 27)[4:])))
        >> FromClient(kit.beat(1) + kit.beat(2))
        << to_broker(kit.beat(1))
        >> FromBroker(kit.pulse(1)[:6])
        >> FromBroker(kit.pulse(1)[6:])
        << to_client(kit.pulse(1) + kit.pulse(2, 27))
    )


def test_an_error_code_is_stamped_onto_the_response_of_the_broker() -> None:
    fault = parse_fault("api == Heartbeat -> stamp REBALANCE_IN_PROGRESS once")
    assert (
        Playbook(fault, recording=True)
        >> Passes(CLIENT, kit.beat(), "client test")
        >> FromBroker(kit.pulse())
        << to_client(kit.pulse(1, 27))
        << RecordedUpstream(CLIENT, kit.beat())
        << RecordedUpstream(BROKER, kit.pulse())
        << Recorded(BROKER, kit.pulse(1, 27), "fault: stamp REBALANCE_IN_PROGRESS")
    )


def test_a_held_request_waits_for_somebody() -> None:
    book = Playbook(kit.Always(CLIENT, Hold())) >> FromClient(kit.beat()) << Read(CLIENT, False)
    assert book >> Released(CLIENT, Forward()) << to_broker(kit.beat()) << Read(CLIENT, True)
    assert len(book.bench.relay.pairing) == 1


def test_a_held_request_that_is_dropped_lets_the_next_one_pass() -> None:
    book = (
        Playbook(kit.Always(CLIENT, Hold()))
        >> FromClient(kit.beat(1) + kit.beat(2))
        << Read(CLIENT, False)
    )
    assert book >> Released(CLIENT, Drop()) << to_broker(kit.beat(2)) << Read(CLIENT, True)
    assert [each.correlation_id for each in book.bench.relay.pairing] == [2]


def test_a_held_response_is_let_go_as_somebody_edited_it() -> None:
    assert (
        Playbook(kit.Always(BROKER, Hold()))
        >> Passes(CLIENT, kit.beat())
        >> FromBroker(kit.pulse())
        << Read(BROKER, False)
        >> Released(BROKER, Replace(kit.pulse(1, 27)[4:]))
        << to_client(kit.pulse(1, 27))
        << Read(BROKER, True)
    )


def test_a_response_that_is_held_when_all_is_closed_is_recorded_as_lost() -> None:
    assert (
        Playbook(kit.Always(BROKER, Hold()), recording=True)
        >> Passes(CLIENT, kit.beat(), "client test")
        >> FromBroker(kit.pulse())
        << Read(BROKER, False)
        >> Closed()
        << RecordedUpstream(CLIENT, kit.beat())
        << RecordedUpstream(BROKER, kit.pulse(), "rule: rule [10.0.0.1:5000 1]")
    )


def test_a_rule_that_takes_its_time_stops_its_direction_only() -> None:
    async def later() -> None: ...

    waits: Awaitable[None] = later()
    assert (
        Playbook(kit.Always(CLIENT, waits))
        >> FromClient(kit.beat())
        << Read(CLIENT, False)
        << ask()
        >> Decided(Drop())
        << Read(CLIENT, True)
    )
    waits.close()


@pytest.mark.parametrize("how", ["reset", "fin", "half"])
def test_a_rule_that_closes_sends_the_start_of_the_frame_first(how: str) -> None:
    book = (
        Playbook(kit.Always(BROKER, Close(how, 6)))
        >> Passes(CLIENT, kit.beat())
        >> FromBroker(kit.pulse())
        << to_client(kit.pulse()[:6])
        << End(CLIENT, how)
    )
    assert book << (Read(BROKER, False) if how == "half" else End(BROKER, how))


# --- addresses and versions


def test_metadata_leads_clients_to_us() -> None:
    asked = kit.request(kit.METADATA, 12)
    told = kit.response(kit.METADATA, 12, {"brokers": [kit.endpoint(2, "10.9.8.7", 9092)]})
    book = Playbook(recording=True)
    book >> FromClient(asked) << to_broker(asked) << Recorded(CLIENT, asked, "client test")
    book >> FromBroker(told)
    port = book.port(2)
    ours = kit.response(kit.METADATA, 12, {"brokers": [kit.endpoint(2, "127.0.0.1", port)]})
    changed = f"addresses: node 2 10.9.8.7:9092 -> 127.0.0.1:{port}"
    assert (
        book
        << to_client(ours)
        << RecordedUpstream(CLIENT, asked)
        << RecordedUpstream(BROKER, told)
        << Recorded(BROKER, ours, changed)
    )


def test_an_api_versions_request_that_is_too_new_is_answered_by_us() -> None:
    book = Playbook() >> FromClient(framed(struct.pack(">hhih", 18, 99, 5, -1) + b"\0\1\1\0"))
    told = decode_response(book.bench.sent(CLIENT)[4:], kit.API_VERSIONS, 99)
    assert (told.header["correlation_id"], told.body["error_code"]) == (5, 35)
    assert book << to_client(book.bench.sent(CLIENT))


# --- secrets


def test_raw_tokens_pass_and_are_not_recorded() -> None:
    secret = b"\0alice\0secret"
    asked = kit.request(kit.SASL_HANDSHAKE, 0, {"mechanism": "PLAIN"})
    told = kit.response(kit.SASL_HANDSHAKE, 0, {"mechanisms": ["PLAIN"]})
    assert (
        Playbook(recording=True)
        >> Passes(CLIENT, asked, "client test")
        >> Passes(BROKER, told)
        >> FromClient(framed(secret))
        << to_broker(framed(secret))
        << Recorded(CLIENT, hidden(framed(secret), secret))
        >> Passes(BROKER, framed(b""))
        >> Passes(CLIENT, kit.beat(9))
    )


def test_tokens_in_requests_pass_and_are_not_recorded() -> None:
    secret = b"\0alice\0secret"
    asked = kit.request(kit.SASL_AUTHENTICATE, 2, {"auth_bytes": secret})
    told = kit.response(kit.SASL_AUTHENTICATE, 2)
    assert (
        Playbook(recording=True)
        >> FromClient(asked)
        << to_broker(asked)
        << Recorded(CLIENT, hidden(asked, secret), "client test")
        >> Passes(BROKER, told)
    )


def test_a_token_that_is_cut_short_is_not_recorded_either() -> None:
    asked = kit.request(kit.SASL_AUTHENTICATE, 2, {"auth_bytes": b"\0alice\0secret"})
    part = asked[:-8]
    assert (
        Playbook(recording=True)
        >> FromClient(part)
        >> Ends(CLIENT)
        << to_broker(part)
        << End(BROKER, "half")
        << Recorded(CLIENT, part[:19] + b"*" * (len(part) - 19), "client test")
    )
