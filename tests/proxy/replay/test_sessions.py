"""A captured fetch session and those of the peer: what they hold is the same at each request."""

from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafkascope.dissectors.codec.walk import fitted
from kafkascope.dissectors.registry import layout_of, write_layout
from kafkascope.proxy.replay.sessions import UNKNOWN, Leaders, Sessions

Place = tuple[str, int]
LAYOUT: Final = layout_of("FetchRequest", 12)
PLACES: Final = [(topic, number) for topic in "abc" for number in range(3)]
NODES: Final = [UNKNOWN, 1, 2, 3]


def topics(places: dict[Place, int]) -> list[dict[str, Any]]:
    found: dict[str, list[dict[str, int]]] = {}
    for (topic, number), offset in places.items():
        found.setdefault(topic, []).append({"partition": number, "fetch_offset": offset})
    return [{"topic": topic, "partitions": parts} for topic, parts in found.items()]


def fetch(
    said: dict[Place, int], session: int, epoch: int, forgotten: tuple[Place, ...] = (), version=12
) -> dict[str, Any]:
    body = {
        "session_id": session,
        "session_epoch": epoch,
        "topics": topics(said),
        "forgotten_topics_data": [
            {"topic": topic, "partitions": [number]} for topic, number in forgotten
        ],
    }
    return fitted(layout_of("FetchRequest", version), body)


def listed(body: dict[str, Any]) -> dict[Place, int]:
    return {
        (topic["topic"], part["partition"]): part["fetch_offset"]
        for topic in body["topics"]
        for part in topic["partitions"]
    }


def told(leaders: Leaders, places: dict[Place, int]) -> Leaders:
    for place, node in places.items():
        leaders.learn(place, node)
    return leaders


class Node:
    """A broker's sessions, as KIP-227 has them."""

    def __init__(self) -> None:
        self.next = 100
        self.sessions: dict[int, tuple[int, dict[Place, int]]] = {}

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[Place, int]]:
        """Session id and what is read; an error is an id of 0 and nothing."""
        known, epoch = body["session_id"], body["session_epoch"]
        if epoch == -1:
            self.sessions.pop(known, None)
            return 0, listed(body)
        if epoch == 0:
            self.next += 1
            self.sessions[self.next] = (1, listed(body))
            return self.next, listed(body)
        if known not in self.sessions or self.sessions[known][0] != epoch:
            return 0, {}
        held = self.sessions[known][1]
        held.update(listed(body))
        for topic in body["forgotten_topics_data"]:
            for number in topic["partitions"]:
                held.pop((topic["topic"], number), None)
        self.sessions[known] = (epoch + 1, held)
        return known, held


class Peer(RuleBasedStateMachine):
    """One captured session, and a peer whose leaders move and that lets go of sessions."""

    @initialize(nodes=st.lists(st.sampled_from(NODES), min_size=9, max_size=9))
    def begin(self, nodes: list[int]) -> None:
        self.leaders = told(Leaders(), dict(zip(PLACES, nodes, strict=True)))
        self.sessions = Sessions()
        self.nodes = {node: Node() for node in NODES}
        self.held: dict[Place, int] = {}
        self.read: dict[Place, int] = {}
        self.epoch = self.number = 0
        self.whole = True

    def ask(self, said: dict[Place, int], forgotten: tuple[Place, ...] = ()) -> None:
        body = fetch(said, 77 if self.epoch else 0, self.epoch, forgotten)
        self.number += 1
        parts = self.sessions.request(self.number, LAYOUT, body, self.leaders)
        assert parts
        self.read, self.whole = {}, True
        for node, part in parts.items():
            write_layout(LAYOUT, part)
            had = part["session_epoch"]
            id_, read = self.nodes[node].answer(part)
            self.whole &= bool(id_)
            assert id_ or had > 0
            assert not self.read.keys() & read.keys(), "it is read from two nodes"
            self.read |= read
            self.sessions.answered(self.number, node, {"session_id": id_})
        self.sessions.done(self.number, {"session_id": 77})
        self.held |= said
        for place in forgotten:
            self.held.pop(place, None)
        self.epoch += 1

    @rule(said=st.dictionaries(st.sampled_from(PLACES), st.integers(0, 9)))
    def starts_anew(self, said: dict[Place, int]) -> None:
        self.epoch, self.held = 0, {}
        self.ask(said)

    @precondition(lambda self: self.epoch)
    @rule(
        said=st.dictionaries(st.sampled_from(PLACES), st.integers(0, 9), max_size=3),
        forgotten=st.lists(st.sampled_from(PLACES), max_size=3, unique=True),
    )
    def goes_on(self, said: dict[Place, int], forgotten: list[Place]) -> None:
        self.ask(said, tuple(forgotten))

    @rule(moved=st.dictionaries(st.sampled_from(PLACES), st.sampled_from(NODES), max_size=9))
    def leaders_move(self, moved: dict[Place, int]) -> None:
        told(self.leaders, moved)

    @rule(node=st.sampled_from(NODES))
    def forgets_its_sessions(self, node: int) -> None:
        self.nodes[node].sessions.clear()

    @precondition(lambda self: self.epoch)
    @rule()
    def ends(self) -> None:
        parts = self.sessions.request(0, LAYOUT, fetch({}, 77, -1), self.leaders)
        assert parts
        for node, part in parts.items():
            assert part["session_epoch"] == -1
            self.nodes[node].answer(part)
        self.epoch, self.held, self.read = 0, {}, {}

    @invariant()
    def reads_what_the_capture_read(self) -> None:
        if not hasattr(self, "nodes") or not self.epoch:
            return
        if self.whole:
            assert self.read == self.held
        else:
            # A node said that it has no session: at the next request it has one.
            assert self.read.items() <= self.held.items()
            self.ask({})
            assert (self.read, self.whole) == (self.held, True)


TestPeer = Peer.TestCase


class Counting(Leaders):
    """Leaders that count how often they are asked for."""

    asked = 0

    def of(self, topic: str | bytes, number: int) -> int:
        self.asked += 1
        return super().of(topic, number)


def begun(sessions: Sessions, leaders: Leaders, places: dict[Place, int]) -> dict[int, Any]:
    parts = sessions.request(1, LAYOUT, fetch(dict.fromkeys(places, 0), 0, 0), leaders)
    for node in parts:
        sessions.answered(1, node, {"session_id": 900 + node})
    sessions.done(1, {"session_id": 77})
    return parts


@given(st.sampled_from([1, 2, 5]))
def test_a_request_of_a_session_costs_what_it_says(nodes):
    """With partitions of several leaders, or none, each was spelled out in full."""
    led = {("a", number): number % nodes for number in range(50)}
    leaders = told(Counting(), led)
    sessions = Sessions()
    assert len(begun(sessions, leaders, led)) == nodes
    leaders.asked = 0
    for epoch in range(1, 20):
        body = fetch({("a", 7): epoch}, 77, epoch)
        parts = sessions.request(1 + epoch, LAYOUT, body, leaders)
        assert sum(len(listed(part)) for part in parts.values()) == 1
        assert {part["session_epoch"] for part in parts.values()} == {epoch}
        assert {node: part["session_id"] for node, part in parts.items()} == {
            node: 900 + node for node in range(nodes)
        }
    assert leaders.asked == 19
    # Leaders of other partitions change: nothing of this session is looked at for it.
    told(leaders, {("b", 1): 1})
    leaders.asked = 0
    sessions.request(40, LAYOUT, fetch({}, 77, 20), leaders)
    assert leaders.asked == 0


def test_a_peer_without_room_for_sessions_gets_all_each_time():
    led = {("a", 0): 1, ("b", 0): 1}
    leaders, sessions = told(Leaders(), led), Sessions()
    for number in range(3):
        body = fetch(dict.fromkeys(led, 0) if not number else {}, 77 * bool(number), number)
        parts = sessions.request(number, LAYOUT, body, leaders)
        assert listed(parts[1]) == dict.fromkeys(led, 0)
        assert (parts[1]["session_id"], parts[1]["session_epoch"]) == (0, 0)
        sessions.answered(number, 1, {"session_id": 0})
        sessions.done(number, {"session_id": 77})


def test_the_end_of_a_session_ends_those_of_the_peer():
    led = {("a", 0): 1, ("b", 0): 2}
    leaders, sessions = told(Leaders(), led), Sessions()
    begun(sessions, leaders, led)
    parts = sessions.request(2, LAYOUT, fetch({}, 77, -1), leaders)
    assert {node: (part["session_id"], part["topics"]) for node, part in parts.items()} == {
        1: (901, []),
        2: (902, []),
    }
    # What has no session any more is asked for without one.
    parts = sessions.request(3, LAYOUT, fetch(led, 77, -1), leaders)
    assert {node: part["session_id"] for node, part in parts.items()} == {1: 0, 2: 0}


def test_a_session_of_two_versions_can_be_written():
    """No client does so; a damaged capture says anything."""
    led = {("a", 0): 1, ("b", 0): 2}
    leaders, sessions = told(Leaders(), led), Sessions()
    layout = layout_of("FetchRequest", 7)
    sessions.request(1, layout, fetch(dict.fromkeys(led, 0), 0, 0, version=7), leaders)
    sessions.done(1, {"session_id": 77})
    parts = sessions.request(2, LAYOUT, fetch({}, 77, 1), leaders)
    for part in parts.values():
        write_layout(LAYOUT, part)
    assert len(parts) == 2


def test_what_never_was_answered_is_let_go_of():
    leaders, sessions = told(Leaders(), {("a", 0): 1}), Sessions()
    sessions.request(1, LAYOUT, fetch({("a", 0): 0}, 0, 0), leaders)
    sessions.done(1, None)
    sessions.answered(1, 1, {"session_id": 5})
    assert not sessions._pending
    assert not sessions._sessions
