"""What an incremental Fetch implies: all that the session was asked for and did not drop again."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.bodies import fetch_sessions
from kafkascope.analyzer.bodies.fetch_sessions import FETCH, SHARE_FETCH, FetchSessions, Implied
from kafkascope.analyzer.bodies.limits import LIMITS, BodyLimits
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.full import full_line
from kafkascope.analyzer.exchanges.rows import row_of, to_json
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.registry import api_of, layout_of
from tests.kit.wire import Wire, request, response, told
from tests.matrix import mostly_slow
from tests.strategies import bodies

TOPIC_ID = bytes(range(16))


def topics(*partitions: tuple[str | bytes, int]) -> list[dict[str, Any]]:
    return [
        {"topic" if isinstance(topic, str) else "topic_id": topic, "partitions": [{"partition": n}]}
        for topic, n in partitions
    ]


def fetch(
    session: int, epoch: int, *listed: tuple[str | bytes, int], gone: tuple[Any, ...] = ()
) -> dict[str, Any]:
    forgotten = [{**topics(each)[0], "partitions": [each[1]]} for each in gone]
    body = {"session_id": session, "session_epoch": epoch, "topics": topics(*listed)}
    return body | {"forgotten_topics_data": forgotten}


def opened(
    *listed: tuple[str | bytes, int], session: int = 9, limits: BodyLimits = LIMITS
) -> FetchSessions:
    sessions = FetchSessions(limits=limits)
    asked = fetch(0, 0, *listed)
    assert sessions.request(FETCH, asked) is None
    sessions.response(FETCH, asked, {"error_code": 0, "session_id": session})
    return sessions


def implied(sessions: FetchSessions, body: dict[str, Any], key: int = FETCH) -> Any:
    found = sessions.request(key, body)
    return None if found.implied is None else set(found.implied.partitions or ())


def test_an_incremental_fetch_implies_what_the_session_began_with() -> None:
    sessions = opened(("a", 0), ("a", 1))
    found = sessions.request(FETCH, fetch(9, 1))
    assert found == fetch_sessions.FetchSession(
        9, 1, Implied(2, (("a", 0), ("a", 1)), ("a",)), incremental=True
    )


def test_offsets_of_partitions_that_only_the_response_has_are_those_of_earlier_requests() -> None:
    sessions = FetchSessions()
    asked = fetch(0, 0, ("a", 0), ("a", 1), (TOPIC_ID, 0))
    for number, each in enumerate(asked["topics"]):
        each["partitions"][0]["fetch_offset"] = 40 + number
    sessions.response(FETCH, asked, {"error_code": 0, "session_id": 9})
    more = fetch(9, 1, ("a", 1))
    parts = [{"partition_index": 0, "records": b"r"}, {"partition_index": 1, "records": b"r"}]
    silent = {"topic_id": TOPIC_ID, "partitions": [{"partition_index": 0, "records": b""}]}
    answer = {"error_code": 0, "responses": [{"topic": "a", "partitions": parts}, silent]}
    found = sessions.response(FETCH, more, answer, sessions.request(FETCH, more))
    assert found.offsets == {("a", 0): 40}


def test_a_session_from_before_the_capture_is_unknown() -> None:
    assert FetchSessions().request(FETCH, fetch(9, 41, ("a", 0))) == fetch_sessions.FetchSession(
        9, 41, None, incremental=True
    )


@pytest.mark.parametrize("epoch", [-1, 0])
def test_a_full_request_ends_the_session_that_it_names(epoch: int) -> None:
    sessions = opened(("a", 0))
    found = sessions.request(FETCH, fetch(9, epoch, ("b", 0)))
    assert found == fetch_sessions.FetchSession(
        9, epoch, Implied(1, (("b", 0),), ("b",)), incremental=False
    )
    assert implied(sessions, fetch(9, 1)) is None


@pytest.mark.parametrize("error", [70, 71])
def test_a_session_that_the_broker_lost_is_over(error: int) -> None:
    sessions = opened(("a", 0))
    asked = fetch(9, 1)
    sessions.request(FETCH, asked)
    sessions.response(FETCH, asked, {"error_code": error, "session_id": 0})
    assert implied(sessions, fetch(9, 2)) is None


def test_a_broker_may_refuse_a_session() -> None:
    sessions = opened(("a", 0), session=0)
    assert sessions.request(FETCH, fetch(0, 0, ("a", 0))) is None
    assert implied(sessions, fetch(9, 1)) is None


def test_old_versions_know_no_sessions() -> None:
    assert FetchSessions().request(FETCH, {"topics": topics(("a", 0))}) is None


def share(epoch: int, *listed: tuple[bytes, int], gone: tuple[Any, ...] = ()) -> dict[str, Any]:
    return {
        "group_id": "g",
        "member_id": "m",
        "share_session_epoch": epoch,
        "topics": [{"topic_id": t, "partitions": [{"partition_index": n}]} for t, n in listed],
        "forgotten_topics_data": [{"topic_id": t, "partitions": [n]} for t, n in gone],
    }


def test_share_sessions_are_named_by_group_and_member() -> None:
    sessions = FetchSessions()
    first, second = (TOPIC_ID, 0), (TOPIC_ID, 1)
    assert implied(sessions, share(0, first), SHARE_FETCH) == {first}
    assert implied(sessions, share(1, second), SHARE_FETCH) == {first, second}
    # Acknowledging adds nothing to what is fetched.
    assert implied(sessions, share(2, (TOPIC_ID, 7)), fetch_sessions.SHARE_ACKNOWLEDGE) == {
        first,
        second,
    }
    assert implied(sessions, share(3, gone=(first,)), SHARE_FETCH) == {second}
    assert implied(sessions, share(-1, second), fetch_sessions.SHARE_ACKNOWLEDGE) == {second}
    assert implied(sessions, share(4), SHARE_FETCH) is None


def test_a_lost_share_session_is_unknown() -> None:
    sessions = FetchSessions()
    asked = share(0, (TOPIC_ID, 0))
    sessions.request(SHARE_FETCH, asked)
    sessions.response(SHARE_FETCH, asked, {"error_code": 122})
    assert implied(sessions, share(1), SHARE_FETCH) is None


def test_what_is_remembered_is_bounded() -> None:
    few = LIMITS._replace(session_partitions=2, sessions=3)
    sessions = opened(("a", 0), ("a", 1), ("a", 2), session=1, limits=few)
    assert implied(sessions, fetch(1, 1)) is None
    for number in range(2, 9):
        asked = fetch(0, 0, ("a", 0))
        sessions.response(FETCH, asked, {"error_code": 0, "session_id": number})
    assert [implied(sessions, fetch(n, 1)) is not None for n in range(2, 9)] == [False] * 4 + [
        True
    ] * 3


PARTITIONS = st.lists(st.tuples(st.sampled_from(["a", "b", TOPIC_ID]), st.integers(0, 3)))


@given(PARTITIONS, st.lists(st.tuples(PARTITIONS, PARTITIONS)))
@settings(max_examples=60)
def test_it_remembers_as_a_set_would(first: Any, changes: list[tuple[Any, Any]]) -> None:
    sessions, known = opened(*first), set(first)
    for epoch, (added, gone) in enumerate(changes, start=1):
        known = (known | set(added)) - set(gone)
        found = sessions.request(FETCH, fetch(9, epoch, *added, gone=tuple(gone)))
        assert set(found.implied.partitions or ()) == known
        assert found.implied.size == len(known)
        assert sorted(found.implied.topics, key=repr) == sorted({t for t, _ in known}, key=repr)
        # Who goes on with the state tells the same, in the same order.
        loaded = FetchSessions().load(sessions.dump())
        assert loaded.request(FETCH, fetch(9, epoch)) == found
        assert loaded.held == sessions.held


def test_large_sessions_tell_their_size_and_first_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each request tells stays below a limit, as n requests of n partitions would be n²."""
    monkeypatch.setattr(fetch_sessions, "LISTED", 2)
    context = Context()
    sessions = FetchSessions(context)
    asked = fetch(0, 0, ("a", 0), ("b", 0))
    sessions.response(FETCH, asked, {"error_code": 0, "session_id": 9})
    assert context.left_out() == set()
    found = [
        sessions.request(FETCH, each)
        for each in (
            fetch(9, 1, ("a", 1)),
            fetch(9, 2, ("c", 0)),
            fetch(9, 3, gone=(("a", 0), ("a", 1), ("b", 0))),
        )
    ]
    assert [each and each.implied for each in found] == [
        Implied(3, None, ("a", "b")),
        Implied(4, None, ("a", "b")),
        Implied(1, (("c", 0),), ("c",)),
    ]
    assert sessions.held == fetch_sessions.PARTITION_BYTES
    (said,) = context.left_out()
    assert "topics: requests that do not name them are found by the first ones" in said


CALLS = [
    (key, version)
    for key in (FETCH, SHARE_FETCH, fetch_sessions.SHARE_ACKNOWLEDGE)
    for version in range(api_of(key).versions.low, api_of(key).versions.high + 1)
]


def oldest_or_newest(call: tuple[int, int]) -> bool:
    versions = api_of(call[0]).versions
    return call[1] in (versions.low, versions.high)


@pytest.mark.parametrize(("key", "version"), mostly_slow(CALLS, oldest_or_newest))
@given(data=st.data())
@settings(max_examples=8)
def test_whatever_a_body_says_is_taken(key: int, version: int, data: st.DataObject) -> None:
    name = api_of(key).name
    sessions = FetchSessions()
    for _ in range(2):
        asked = data.draw(bodies(layout_of(f"{name}Request", version)))
        sessions.request(key, asked)
        sessions.response(key, asked, data.draw(bodies(layout_of(f"{name}Response", version))))


def test_topics_are_called_by_name_where_it_is_known() -> None:
    names = TopicNames()
    names.learn(TOPIC_ID, "orders")
    other = bytes(15) + b"\2"
    partitions = ((TOPIC_ID, 2), ("a", 0), (TOPIC_ID, 1), (other, 0))
    assert fetch_sessions.by_topic(partitions, names) == {
        "orders": [1, 2],
        "a": [0],
        "AAAAAAAAAAAAAAAAAAAAAg": [0],
    }


def sessions_of(exchanges: list[Exchange]) -> list[Any]:
    implied = [e.fetch_session and e.fetch_session.implied for e in exchanges]
    return [each and each.partitions for each in implied]


def test_exchanges_of_a_connection_carry_their_session() -> None:
    listed = [{"topic": "a", "partitions": [{"partition": 4, "partition_max_bytes": 1024}]}]
    wire = Wire().client(request("Fetch", 11, 1, session_epoch=0, topics=listed))
    wire.broker(response("Fetch", 11, 1, session_id=77))
    wire.client(request("Fetch", 11, 2, session_id=77, session_epoch=1, topics=[]))
    wire.broker(response("Fetch", 11, 2, session_id=77))
    wire.client(request("Fetch", 11, 3, session_id=5, session_epoch=9, topics=[]))
    wire.broker(response("Fetch", 11, 3, session_id=5))
    found = told(wire.events)
    assert sessions_of(found) == [None, (("a", 4),), None]
    rows = [row_of(each, TopicNames()) for each in found]
    assert [(row.topics, row.implied_topics) for row in rows] == [
        (("a",), ()),
        ((), ("a",)),
        ((), ()),
    ]
    assert to_json(rows[1])["implied_topics"] == ("a",)


def test_full_lines_tell_the_session() -> None:
    wire = Wire().client(request("ShareFetch", 1, 1, **share(0)))
    wire.client(request("Fetch", 11, 3, session_id=5, session_epoch=9))
    first, second = (
        json.loads(full_line(row_of(each, TopicNames()), each, TopicNames()))["fetch_session"]
        for each in told(wire.events)
    )
    assert first == {"id": None, "epoch": 0, "incremental": False, "partitions": {}}
    assert second == {"id": 5, "epoch": 9, "incremental": True, "partitions": None}


def test_a_fetch_of_no_bytes_is_one_all_the_same() -> None:
    asked = fetch(0, 0)
    asked["topics"] = [{"topic": "a", "partitions": [{"partition": 0, "partition_max_bytes": 0}]}]
    sessions = FetchSessions()
    sessions.response(FETCH, asked, {"error_code": 0, "session_id": 9})
    assert implied(sessions, fetch(9, 1)) == {("a", 0)}


def test_a_share_fetch_of_no_bytes_acknowledges_only() -> None:
    asked = share(0, (TOPIC_ID, 0), (TOPIC_ID, 1))
    asked["topics"][1]["partitions"][0]["partition_max_bytes"] = 0
    assert implied(FetchSessions(), asked, SHARE_FETCH) == {(TOPIC_ID, 0)}
