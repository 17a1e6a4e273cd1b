"""Which response belongs to which request, and what becomes of those without."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.limits import ConversationLimits
from kafkascope.analyzer.conversation.resync import RequestHeuristic
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.ranks import bounded
from tests.kit.wire import (
    CONVERSATION,
    MS,
    Wire,
    beat,
    framed,
    heartbeat,
    produce,
    rechunked,
    request,
    response,
    shape,
    told,
)


def pairs(exchanges: list[Exchange]) -> list[tuple[int | None, str, bool]]:
    return [(e.correlation_id, e.state, e.response is not None) for e in exchanges]


def test_a_request_pairs_with_its_response() -> None:
    (one,) = told(Wire().client(heartbeat(7)).broker(beat(7, 27)).events)
    assert (one.number, one.state, one.api, one.api_version) == (1, "answered", "Heartbeat", 3)
    assert one.client_id == "app"
    assert one.latency_ns == MS
    assert one.request.body["group_id"] == "g"
    assert one.response.body["error_code"] == 27
    assert one.undecoded == ()


def test_latency_runs_from_the_first_byte_of_the_request_to_the_last_of_the_response() -> None:
    asked, answer = heartbeat(1), beat(1)
    wire = Wire().client(asked[:5]).client(asked[5:]).broker(answer[:6]).broker(answer[6:])
    (one,) = told(wire.events)
    assert one.latency_ns == 3 * MS
    assert one.server_ns == MS


def test_pipelined_requests_pair_by_id_in_any_order() -> None:
    wire = Wire().client(heartbeat(1), heartbeat(2), heartbeat(3))
    found = told(wire.broker(beat(3), beat(1), beat(2)).events)
    assert pairs(found) == [(1, "answered", True), (2, "answered", True), (3, "answered", True)]


def test_an_id_that_is_used_twice_at_once_is_answered_in_order() -> None:
    wire = Wire().client(heartbeat(5), request("Metadata", 4, 5)).broker(beat(5))
    found = told(wire.broker(response("Metadata", 4, 5, cluster_id="x")).events)
    assert [(e.api, e.undecoded) for e in found] == [("Heartbeat", ()), ("Metadata", ())]


def test_a_produce_without_acks_expects_no_answer() -> None:
    wire = Wire().client(produce(1, acks=0), produce(2)).broker(response("Produce", 7, 2))
    assert pairs(told(wire.events)) == [(1, "no-reply", False), (2, "answered", True)]


def test_acks_are_read_from_a_cut_produce() -> None:
    asked = produce(1, acks=0, records=bytes(5000))
    wire = Wire().client(asked[:60]).gap("client", len(asked) - 60, "cut").client(heartbeat(2))
    found = told(wire.broker(beat(2)).events)
    assert pairs(found) == [(1, "no-reply", False), (2, "answered", True)]
    assert found[0].undecoded[0].reason == "gap"


@pytest.mark.parametrize(
    ("side", "how", "state", "reason"),
    [
        ("broker", "fin", "lost", "closed by the broker"),
        ("client", "rst", "lost", "reset by the client"),
        (None, "reuse", "lost", "the ports were reused for a new connection"),
        (None, "end", "open", "in flight when the capture ends"),
    ],
)
def test_why_there_is_no_answer(side: str | None, how: str, state: str, reason: str) -> None:
    (one,) = told(Wire().client(heartbeat(1)).close(side, how).events)
    assert (one.state, one.reason) == (state, reason)


def test_an_answer_may_follow_the_fin_of_the_client() -> None:
    wire = Wire().client(heartbeat(1)).close("client").broker(beat(1)).close("broker")
    assert pairs(told(wire.events)) == [(1, "answered", True)]


def test_an_answer_that_the_end_cuts_off_is_none() -> None:
    answer = beat(1)
    (one,) = told(Wire().client(heartbeat(1)).broker(answer[:-3]).close("client", "rst").events)
    assert (one.state, one.response) == ("lost", None)
    assert one.notes[0].text == f"{len(answer) - 3} of {len(answer)} bytes of its response arrived"


def test_a_response_without_request_is_an_orphan_and_later_ones_pair() -> None:
    wire = Wire().client(heartbeat(1)).broker(beat(9), beat(1)).client(heartbeat(2)).broker(beat(2))
    found = told(wire.events)
    assert [(e.state, e.correlation_id) for e in found if e.state == "orphan"] == [("orphan", 9)]
    assert [e.correlation_id for e in found if e.state == "answered"] == [1, 2]


def test_a_cut_request_still_has_its_answer() -> None:
    asked = request("Metadata", 4, 1, topics=[{"name": "t" * 500}])
    wire = Wire().client(asked[:40]).gap("client", len(asked) - 40, "cut")
    (one,) = told(wire.broker(response("Metadata", 4, 1)).events)
    assert one.state == "answered"
    (cut,) = one.undecoded
    assert (cut.side, cut.reason, cut.bytes) == ("request", "gap", len(asked) - 40)
    assert one.response.body is not None


def test_an_answer_that_comes_before_the_gap_in_its_request_pairs() -> None:
    asked = request("Metadata", 4, 1, topics=[{"name": "t" * 500}])
    wire = Wire().client(asked[:40]).broker(response("Metadata", 4, 1))
    wire.gap("client", len(asked) - 40).client(heartbeat(2)).broker(beat(2))
    assert pairs(told(wire.events)) == [(1, "answered", True), (2, "answered", True)]


def test_requests_behind_a_gap_are_found_again() -> None:
    wire = Wire().client(heartbeat(1)).broker(beat(1)).gap("client", 1000)
    wire.client(bytes(37) + heartbeat(5) + heartbeat(6)).broker(beat(5), beat(6))
    found = told(wire.events)
    assert pairs(found) == [(1, "answered", True), (5, "answered", True), (6, "answered", True)]
    assert "37 bytes" in found[1].notes[0].text


def test_an_answer_in_a_gap_is_lost_once_a_later_one_pairs() -> None:
    wire = Wire().client(heartbeat(1), heartbeat(2)).gap("broker", len(beat(1))).broker(beat(2))
    found = told(wire.events)
    assert pairs(found) == [(1, "lost", False), (2, "answered", True)]
    assert found[0].reason == "its response fell into a gap in the capture"


def test_an_unknown_api_pairs_and_says_so() -> None:
    asked = framed(struct.pack(">hhih3s", 999, 0, 4, 3, b"app") + b"body")
    wire = Wire().client(heartbeat(1), asked).broker(beat(1), framed(struct.pack(">i", 4) + b"x"))
    found = told(wire.events)
    assert found[1].api == "Api 999"
    assert [(u.side, u.bytes) for u in found[1].undecoded] == [("request", 4), ("response", 1)]
    assert {u.reason for u in found[1].undecoded} == {"unknown-api"}


def test_a_bad_body_costs_neither_the_response_nor_the_connection() -> None:
    asked = heartbeat(1)
    bad = framed(asked[4:-4])
    wire = Wire().client(bad, heartbeat(2)).broker(beat(1), beat(2))
    found = told(wire.events)
    assert pairs(found) == [(1, "answered", True), (2, "answered", True)]
    assert [u.reason for u in found[0].undecoded] == ["malformed"]
    assert found[0].request.decoded is None


def test_bytes_behind_the_end_are_surplus_and_the_message_shows() -> None:
    (one,) = told(Wire().client(framed(heartbeat(1)[4:] + b"xyz")).broker(beat(1)).events)
    assert [(u.reason, u.bytes) for u in one.undecoded] == [("surplus", 3)]
    assert one.request.body is not None


def test_a_broker_that_lacks_the_version_answers_api_versions_in_version_0() -> None:
    asked = request("ApiVersions", 3, 0, client_software_name="x", client_software_version="1")
    answer = response("ApiVersions", 0, 0, error_code=35)
    (one,) = told(Wire().client(asked).broker(answer).events)
    assert one.undecoded == ()
    assert one.response.decoded.version == 0
    assert one.software == "x 1"


def test_raw_sasl_tokens_after_handshake_0() -> None:
    wire = Wire().client(request("SaslHandshake", 0, 0, mechanism="PLAIN"))
    wire.broker(response("SaslHandshake", 0, 0, mechanisms=["PLAIN"]))
    wire.client(framed(b"\0alice\0secret")).broker(framed(b""))
    found = told(wire.client(heartbeat(0)).broker(beat(0)).events)
    assert [e.api for e in found] == ["SaslHandshake", "SaslToken", "Heartbeat"]
    assert all(e.state == "answered" and not e.undecoded for e in found)
    assert found[2].user == "alice"


def test_tokens_of_gssapi_without_handshake() -> None:
    wire = Wire().client(framed(b"\x60" + bytes(200))).broker(framed(b"challenge"))
    wire.client(framed(b"final")).client(heartbeat(0)).broker(beat(0))
    found = told(wire.events)
    assert [e.api for e in found] == ["SaslToken", "SaslToken", "Heartbeat"]
    assert [e.state for e in found] == ["answered", "no-reply", "answered"]


def test_sasl_authenticate_tells_the_user_and_may_come_again() -> None:
    wire = Wire()
    for start in (0, 10):
        wire.client(request("SaslHandshake", 1, start, mechanism="PLAIN"))
        wire.broker(response("SaslHandshake", 1, start))
        wire.client(request("SaslAuthenticate", 1, start + 1, auth_bytes=b"\0bob\0pw"))
        wire.broker(response("SaslAuthenticate", 1, start + 1))
        wire.client(heartbeat(start + 2)).broker(beat(start + 2))
    found = told(wire.events)
    assert [e.state for e in found] == ["answered"] * 6
    assert found[-1].user == "bob"


def test_a_connection_keeps_the_beginning_of_long_names() -> None:
    """8,000 open connections with users of 30 KB took `spark` 514 MB."""
    long = "x" * 30_000
    wire = Wire().client(request("ApiVersions", 3, 0, client_software_name=long))
    wire.broker(response("ApiVersions", 0, 0, error_code=35))
    wire.client(request("SaslHandshake", 1, 1, mechanism="PLAIN"))
    wire.broker(response("SaslHandshake", 1, 1))
    wire.client(request("SaslAuthenticate", 1, 2, auth_bytes=b"\0%b\0pw" % long.encode()))
    wire.broker(response("SaslAuthenticate", 1, 2))
    wire.client(heartbeat(3)).broker(beat(3))
    last = told(wire.events)[-1]
    assert last.user == bounded(long)
    assert last.software == bounded(long)


def test_a_connection_is_found_again_by_a_client_id_of_usual_length() -> None:
    sense = RequestHeuristic()
    for name in ("x" * 30_000, None, "app", "other"):
        sense.know(name)
    assert sense.client_id == b"app"


def test_numbers_rank_by_the_first_byte_of_the_request() -> None:
    slow, fast = Wire(number=0), Wire(number=1, start_ns=Wire().time_ns + 5 * MS)
    long = produce(1, records=bytes(100))
    slow.client(long[:30])
    fast.client(heartbeat(8)).broker(beat(8))
    late = Wire(number=0)
    late.connection, late.offsets, late.time_ns = slow.connection, slow.offsets, fast.time_ns
    late.events = []
    late.client(long[30:]).broker(response("Produce", 7, 1))
    found = told([*slow.events, *fast.events, *late.events])
    assert [(e.number, e.api) for e in found] == [(1, "Produce"), (2, "Heartbeat")]


@given(st.lists(st.integers(1, 40), max_size=8))
def test_any_chunking_of_the_same_bytes_tells_the_same(cuts: list[int]) -> None:
    assert shape(told(rechunked(CONVERSATION, cuts))) == shape(told(CONVERSATION))


def test_requests_without_any_answer_do_not_fill_the_memory() -> None:
    # Small ones count sixteenfold.
    context = Context(limits=ConversationLimits(request_bytes=51_000))
    wire = Wire()
    for number in range(8):
        wire.client(produce(number, records=bytes(1000)))
    found = told(wire.broker(response("Produce", 7, 7)).events, context)
    assert [e.state for e in found] == ["lost"] * 7 + ["answered"]
    assert found[0].reason == "none was seen while many later requests were sent"
    assert found[6].reason == "skipped: the broker answered Produce 7, a later request"


def test_what_is_answered_to_requests_that_were_given_up_is_no_response_to_none() -> None:
    # Each was told twice, as lost and as an orphan: one more request cost as much as three.
    wire = Wire()
    for number in range(10):
        wire.client(heartbeat(number))
    for number in range(10):
        wire.broker(response("Heartbeat", 3, number))
    # Behind all answers: really one to nothing.
    wire.broker(response("Heartbeat", 3, 99))
    context = Context(limits=ConversationLimits(requests=4))
    states = [each.state for each in told(wire.events, context)]
    assert states == ["lost"] * 6 + ["answered"] * 4 + ["orphan"]
    assert any("responses to them are left out" in text for text in context.left_out())


def test_tiny_requests_count_as_what_they_take() -> None:
    # 800,000 of them on a few connections took a gigabyte.
    context = Context(limits=ConversationLimits(request_bytes=20_000))
    wire = Wire()
    for number in range(100):
        wire.client(heartbeat(number))
    found = told(wire.events, context)
    assert len(found) == 100
    lost = [each for each in found if each.state == "lost"]
    assert len(lost) >= 80
    assert lost[0].reason == "none was seen while many later requests were sent"
