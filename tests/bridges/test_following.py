"""Messages of a connection as they come: the same as the exchanges of the capture."""

from collections import Counter
from pathlib import Path

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.model import Side
from kafkascope.bridges.following import NOT_SEEN, TOKEN, ByteFollower, FollowedMessage
from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import Chunk, Endpoint, Gap
from kafkascope.captures.streams.streams import streams
from tests.kit.samples import ROOT
from tests.kit.wire import beat, heartbeat

SAMPLES = sorted((ROOT / "captures" / "samples").glob("*.pcap*"))
CLIENT, BROKER = Endpoint("10.0.0.1", 50000), Endpoint("10.0.0.2", 9092)


def followed(path: Path) -> Counter[tuple[Side, str, bytes]]:
    """Side, API with version, and payload of all messages."""
    followers: dict[int, ByteFollower] = {}
    found: Counter[tuple[Side, str, bytes]] = Counter()
    with open_inputs([path]) as source:
        for event in streams(source):
            connection = event.connection
            follower = followers.get(connection.number)
            if follower is None:
                follower = followers[connection.number] = ByteFollower(
                    connection.a, connection.b, begins=connection.handshake
                )
            messages: list[FollowedMessage] = []
            if isinstance(event, Chunk):
                messages, _ = follower.feed(event.direction, event.data, event.pieces[0].time_ns)
            elif isinstance(event, Gap) and event.size:
                messages, _ = follower.lost(event.direction, event.size, event.time_ns)
            for side, frame, header, reason in messages:
                name = reason if header is None else f"{header.api_key} {header.api_version}"
                found[side, name, frame.payload] += 1
    return found


def expected(path: Path) -> Counter[tuple[Side, str, bytes]]:
    found: Counter[tuple[Side, str, bytes]] = Counter()
    with open_capture([path]) as capture:
        for each in capture.exchanges():
            if each.zookeeper is not None:
                continue  # Bridges are for Kafka.
            for side in (each.request, each.response):
                if side is not None:
                    name = f"{each.api_key} {each.api_version}"
                    if each.request is None:
                        name = NOT_SEEN
                    elif each.request.header is None:
                        name = TOKEN
                    word: Side = "request" if side is each.request else "response"
                    found[word, name, side.frame.payload] += 1
    return found


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_samples_have_the_messages_of_their_exchanges(path: Path) -> None:
    assert followed(path) == expected(path)


def test_a_request_is_told_before_its_response() -> None:
    follower = ByteFollower(CLIENT, BROKER)
    request, response = heartbeat(1), beat(1)
    messages, exchanges = follower.feed(0, request[:9], 1)
    assert (messages, exchanges) == ([], [])
    messages, exchanges = follower.feed(0, request[9:], 2)
    assert [(each.side, each.reason) for each in messages] == [("request", "")]
    assert exchanges == []
    messages, exchanges = follower.feed(1, response, 3)
    (message,) = messages
    assert message.side == "response"
    assert (message.header.api_key, message.header.correlation_id) == (12, 1)
    assert [each.state for each in exchanges] == ["answered"]
    assert exchanges[0].latency_ns == 2
