"""What became of nodes, sessions and old consumer groups: on sessions made by hand, and on real
brokers."""

from functools import cache
from typing import Any

import pytest

from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.delivery.plans import zookeeper_ranges, zookeeper_round_robin
from kafkascope.analyzer.statistics.errors import Errors
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.traffic import Throughput
from kafkascope.analyzer.statistics.zookeeper.consumers import TOO_MANY, KeptGroups
from kafkascope.analyzer.statistics.zookeeper.model import is_below
from kafkascope.analyzer.statistics.zookeeper.zookeeper import ZooKeeper
from tests.analyzer.findings.judging import time_of
from tests.kit.counting import counted as statistic
from tests.kit.counting import pairs_in, traffic
from tests.kit.samples import CAPTURES, capture_of
from tests.kit.wire import SECOND, Wire
from tests.kit.zookeeper import ZooKeeperWire

DELETED = 2
EPHEMERAL = 1


def counted(*wires: Wire) -> ZooKeeper:
    events = sorted((event for wire in wires for event in wire.events), key=time_of)
    found: ZooKeeper = statistic(ZooKeeper(), pairs_in(events))
    return found


@cache
def read(name: str) -> ZooKeeper:
    pairs, _ = traffic(capture_of(name).name, CAPTURES)
    found: ZooKeeper = statistic(ZooKeeper(), (pair for pair in pairs if pair[1].zookeeper))
    return found


def states(zookeeper: ZooKeeper) -> dict[str, Any]:
    return {line["zk_session"]: line["state"] for line in zookeeper.session_lines()}


def later(wire: ZooKeeperWire, after_ns: int) -> ZooKeeperWire:
    wire.time_ns += after_ns
    return wire


def test_a_session_that_dies_takes_its_nodes_as_others_are_told() -> None:
    dead = ZooKeeperWire(7).connect().create("/brokers/ids/1", b"{}", EPHEMERAL, zxid=5)
    other = ZooKeeperWire(8, number=1).connect()
    later(other, 5 * SECOND).event(DELETED, "/brokers/ids/1")
    zookeeper = counted(dead, other)
    line = zookeeper.session_lines()[0]
    assert (line["state"], line["who"]) == ("expired", ["broker 1"])
    assert line["lost_nodes"] == ["/brokers/ids/1"]
    hows = [each["how"] for each in zookeeper.history("/brokers/ids/1")]
    assert hows == ["", "its session expired"]


def test_a_read_that_finds_nothing_tells_the_same() -> None:
    dead = ZooKeeperWire(7).connect().create("/controller", b"{}", EPHEMERAL, zxid=5)
    other = ZooKeeperWire(8, number=1).connect()
    later(other, 5 * SECOND).get("/controller", error=-101)
    assert states(counted(dead, other)) == {"0x7": "expired", "0x8": "open"}


def test_a_session_that_is_closed_did_not_expire() -> None:
    wire = ZooKeeperWire(7).connect().create("/controller", b"{}", EPHEMERAL, zxid=5)
    other = ZooKeeperWire(8, number=1).connect()
    wire.close_session(zxid=6)
    later(other, 5 * SECOND).event(DELETED, "/controller")
    zookeeper = counted(wire, other)
    assert states(zookeeper)["0x7"] == "closed"
    assert zookeeper.session_lines()[0]["lost_nodes"] == []


def test_a_node_of_its_own_that_a_session_deletes_is_no_loss() -> None:
    wire = ZooKeeperWire(7).connect().create("/e", b"", EPHEMERAL, zxid=5).delete("/e", zxid=6)
    zookeeper = counted(wire)
    assert states(zookeeper) == {"0x7": "open"}
    assert [each["change"] for each in zookeeper.history("/e")] == ["created", "deleted"]


def test_silence_beyond_the_timeout_is_said_and_nothing_more() -> None:
    quiet = ZooKeeperWire(7).connect(timeout_ms=4000)
    other = later(ZooKeeperWire(8, number=1).connect(), 5 * SECOND).create("/n", zxid=9)
    assert states(counted(quiet, other)) == {"0x7": "silent", "0x8": "open"}


def test_a_wrong_password_does_not_end_a_session() -> None:
    wire = ZooKeeperWire(7).connect()
    thief = ZooKeeperWire(7, number=1).connect(attach=True, refused=True)
    later(wire, SECOND).create("/n", zxid=9)
    line = counted(wire, thief).session_lines()[0]
    assert (line["state"], line["refused"]) == ("open", 1)


def test_a_change_is_one_whoever_tells_of_it() -> None:
    wire = ZooKeeperWire(7).connect().create("/n", b"1", zxid=1).set("/n", b"2", zxid=2)
    wire.get("/n", b"2", zxid=2, born=1, version=1).get("/n", b"3", zxid=3, born=1, version=2)
    zookeeper = counted(wire)
    assert [(each["change"], each["data"], each["how"]) for each in zookeeper.history("/n")] == [
        ("created", "1", ""),
        ("changed", "2", ""),
        ("changed", "3", "seen later"),
    ]


def test_a_change_of_a_node_that_was_there_before_makes_no_creation() -> None:
    zookeeper = counted(ZooKeeperWire(7).connect().set("/old", b"2", zxid=2).delete("/old", zxid=3))
    assert [each["change"] for each in zookeeper.history("/old")][-1] == "deleted"


def test_secrets_are_not_kept() -> None:
    zookeeper = read("zookeeper-brokers")
    (line,) = (line for line in zookeeper.rows() if line["path"] == "/config/users/alice")
    assert line["data"] == '{"version":1,"config":{"SCRAM-SHA-256":"********"}}'
    assert "salt=" not in str(zookeeper.dump())


def test_elections_of_real_controllers() -> None:
    elections = read("zookeeper-brokers").elections()
    assert [(each["controller"], each["controller_epoch"], each["end"]) for each in elections] == [
        (1, 1, "session closed"),
        (2, 2, "session expired"),
        (1, 3, "session closed"),
    ]


def test_topics_come_and_go() -> None:
    topics = {each["topic"]: each for each in read("zookeeper-brokers").topics()}
    assert topics.keys() == {"gone", "orders", "pairs"}
    times = [topics["gone"][each] for each in ("created", "deletion_requested", "deleted")]
    assert times == sorted(set(times))
    assert (topics["orders"]["partitions"], topics["orders"]["deleted"]) == (3, None)


# --- consumers of 0.8


@pytest.mark.parametrize(
    ("streams", "partitions", "expected"),
    [
        ({"a": 1, "b": 1}, 3, ["a-0", "a-0", "b-0"]),
        ({"b": 2, "a": 1}, 4, ["a-0", "a-0", "b-0", "b-1"]),
        ({"a": 3}, 2, ["a-0", "a-1"]),
        # Threads are in the order of their names as texts: 10 comes before 2.
        ({"a": 11}, 11, [f"a-{number}" for number in (0, 1, 10, *range(2, 10))]),
    ],
)
def test_ranges(streams: dict[str, int], partitions: int, expected: list[str]) -> None:
    subscriptions = {member: {"t": count} for member, count in streams.items()}
    found = zookeeper_ranges(subscriptions, {"t": partitions})
    assert [found["t", number] for number in range(partitions)] == expected


def test_a_real_group_owned_what_it_should() -> None:
    groups = KeptGroups(read("zookeeper-consumers").stories())
    (line,) = groups.lines()
    assert (line["group"], line["rebalances"]) == ("zk-group", 4)
    assert line["causes"] == ["2 joined", "2 left"]
    assert [each["text"] for each in groups.rebalances("zk-group")] == [
        "zk-group_one joined; owned as assigned by the range assignor",
        "zk-group_two joined; owned as assigned by the range assignor",
        "zk-group_two left; owned as assigned by the range assignor",
        "zk-group_one left; no members left",
    ]
    committed = {each["partition"]: each["committed"] for each in groups.offsets("zk-group")}
    assert committed == {0: 19, 1: 11, 2: 10}


@pytest.mark.parametrize(
    "data", [b"[1]", b"{}", b'{"subscription":[1],"brokerid":{},"endpoints":["x://h:%d"]}' % 10**90]
)
def test_odd_data_is_survived(data: bytes) -> None:
    wire = ZooKeeperWire(7).connect()
    paths = (
        *("/controller", "/cluster/id", "/brokers/ids/1", "/brokers/topics/t"),
        *("/brokers/ids/" + "9" * 5000, "/brokers/topics/t/partitions/" + "9" * 5000),
        *("/consumers/g/ids/g_a", "/consumers/g/owners/t/0", "/consumers/g/offsets/t/0"),
    )
    for zxid, path in enumerate(paths, 1):
        wire.create(path, data, EPHEMERAL, zxid=zxid)
    zookeeper = counted(wire)
    (story,) = zookeeper.stories()
    groups = KeptGroups([story])
    assert len(story.node_lines()) == 9
    assert [line["controller"] for line in story.elections()] == [None]
    assert [line["text"] for line in groups.rebalances("g")] == [
        "g_a joined; partitions of its topics are unknown"
    ]
    assert groups.lines()[0]["commits"] == 1
    assert statistic(Cluster(), pairs_in(wire.events)).rows() == []


def deals(topics: dict[str, int], members: list[str], streams: int) -> dict[Any, str]:
    subscriptions = {member: dict.fromkeys(topics, streams) for member in members}
    return zookeeper_round_robin(subscriptions, topics)


def test_the_other_assignor_deals_partitions_in_the_order_of_their_hashes() -> None:
    """What `RoundRobinAssignor` of 0.8.2 gives: `[orders,0]`.hashCode and so on."""
    found = deals({"orders": 3, "pairs": 2}, ["g_a", "g_b"], 1)
    assert list(found.values()) == ["g_a-0", "g_b-0", "g_a-0", "g_b-0", "g_a-0"]
    assert list(found) == sorted(found, key=lambda part: java_hash(f"[{part[0]},{part[1]}]"))
    # It refuses members that are not alike.
    assert zookeeper_round_robin({"a": {"t": 1}, "b": {"t": 2}}, {"t": 2}) == {}
    assert zookeeper_round_robin({"a": {"t": 1}, "b": {"u": 1}}, {"t": 2, "u": 1}) == {}


def java_hash(text: str) -> int:
    """As the definition has it: s[0]*31^(n-1) + ... in 32 bits with a sign."""
    total = sum(ord(c) * 31 ** (len(text) - 1 - at) for at, c in enumerate(text))
    return (total + 2**31) % 2**32 - 2**31


def owned(owners: dict[int, bytes], subscription: bytes) -> str:
    topic = b'{"version":1,"partitions":{"0":[1],"1":[1],"2":[1],"3":[1]}}'
    wire = ZooKeeperWire(7).connect().create("/brokers/topics/t", topic, zxid=1)
    for number, member in enumerate(("g_a", "g_b")):
        wire.create(f"/consumers/g/ids/{member}", subscription, EPHEMERAL, zxid=2 + number)
    for number, thread in owners.items():
        wire.create(f"/consumers/g/owners/t/{number}", thread, EPHEMERAL, zxid=10 + number)
    lines = KeptGroups(counted(wire).stories()).rebalances("g")
    return str(lines[-1]["text"]).partition("; ")[2]


def test_a_group_may_have_either_assignor() -> None:
    one = b'{"version":1,"subscription":{"t":1},"pattern":"static"}'
    threads = [b"g_a-0", b"g_b-0"]
    dealt = deals({"t": 4}, ["g_a", "g_b"], 1)
    assert (
        owned({n: threads[n // 2] for n in range(4)}, one)
        == "owned as assigned by the range assignor"
    )
    assert [dealt["t", number] for number in range(4)] != ["g_a-0", "g_a-0", "g_b-0", "g_b-0"]
    by_hash = {number: dealt["t", number].encode() for number in range(4)}
    assert owned(by_hash, one) == "owned as assigned by the roundrobin assignor"


def test_patterns_are_held_against_nothing() -> None:
    pattern = b'{"version":1,"subscription":{"t.*":1},"pattern":"white_list"}'
    assert owned({0: b"g_a-0"}, pattern) == (
        "members subscribe by pattern: ownership is not checked"
    )


@pytest.mark.parametrize("pattern", ["t", "s,t", "t|other.topic"])
def test_patterns_that_are_names_are_held_as_names(pattern: str) -> None:
    told = b'{"version":1,"subscription":{"%s":1},"pattern":"white_list"}' % pattern.encode()
    threads = [b"g_a-0", b"g_b-0"]
    whole = {number: threads[number // 2] for number in range(4)}
    assert owned(whole, told) == "owned as assigned by the range assignor"
    del whole[3]
    assert owned(whole, told) == "t-3 is owned by no consumer instead of g_b-0"


def test_what_a_blacklist_leaves_is_held_against_nothing() -> None:
    told = b'{"version":1,"subscription":{"t":1},"pattern":"black_list"}'
    assert "pattern" in owned({0: b"g_a-0"}, told)


def test_owners_that_are_hidden_are_held_against_nothing() -> None:
    one = b'{"version":1,"subscription":{"t":1},"pattern":"static"}'
    assert owned(dict.fromkeys(range(4), b"*****"), one) == "owners are anonymized"
    some = owned(dict.fromkeys(range(3), b"*****"), one)
    assert some == "t-3 is owned by no consumer instead of g_b-0"


# --- ensembles


def at_server(wire: ZooKeeperWire, host: str) -> ZooKeeperWire:
    wire.connection.b = wire.connection.b._replace(host=host)
    return wire


ONE, TWO = "10.0.0.1", "10.0.0.2"


def server(session: int, number: int, host: str) -> ZooKeeperWire:
    return at_server(ZooKeeperWire(session, number=number), host).connect()


def trees(*wires: ZooKeeperWire) -> dict[str, list[str]]:
    """Ensemble -> its nodes."""
    return {
        story.name: [line["path"] for line in story.node_lines()]
        for story in counted(*wires).stories()
    }


def test_servers_of_one_session_are_one_ensemble() -> None:
    one = server(7, 0, ONE).create("/a", zxid=5)
    two = at_server(ZooKeeperWire(7, number=1), TWO).connect(attach=True).create("/b", zxid=6)
    assert trees(one, later(two, SECOND)) == {"10.0.0.1:2181, 10.0.0.2:2181": ["/a", "/b"]}


def test_servers_that_tell_of_one_creation_are_one_ensemble() -> None:
    one = server(7, 0, ONE).get("/a", b"1", zxid=5, born=5, clock_ms=9)
    two = server(8, 1, TWO).get("/a", b"1", zxid=5, born=5, clock_ms=9)
    assert list(trees(one, two)) == ["10.0.0.1:2181, 10.0.0.2:2181"]


def test_a_creation_and_who_reads_it_elsewhere_are_one_change() -> None:
    one = server(7, 0, ONE).create("/a", b"1", zxid=5)
    two = later(server(8, 1, TWO), SECOND).get("/a", b"1", zxid=5, born=5)
    zookeeper = counted(one, two)
    assert [(each["change"], each["how"]) for each in zookeeper.history("/a")] == [("created", "")]
    assert len(zookeeper.stories()) == 1


def test_ensembles_with_equal_paths_do_not_mix() -> None:
    """Both are new, and count alike."""
    wires = []
    for number, host in enumerate((ONE, TWO)):
        wire = server(7 + number, number, host)
        wire.get("/brokers", zxid=2, born=2, clock_ms=1000 + number)
        wire.create("/controller", b'{"brokerid":%d}' % number, EPHEMERAL, zxid=3)
        wires.append(wire)
    wires[0].close_session(zxid=4)
    zookeeper = counted(*wires)
    assert [(each["ensemble"], each["controller"]) for each in zookeeper.elections()] == [
        ("10.0.0.1:2181", 0),
        ("10.0.0.2:2181", 1),
    ]
    ended = {line["zk_session"]: line["state"] for line in zookeeper.session_lines()}
    assert ended == {"0x7": "closed", "0x8": "open"}
    assert [story.doubtful for story in zookeeper.stories()] == [False, False]


def test_what_cannot_be_known_of_ensembles_is_said() -> None:
    one = server(7, 0, ONE).get("/a", zxid=5, born=5, clock_ms=9)
    two = server(8, 1, TWO).create("/b", zxid=6)
    assert [story.doubtful for story in counted(one, two).stories()] == [True, True]


def test_groups_of_one_name_in_two_ensembles_are_two() -> None:
    groups = KeptGroups(read("zookeeper-groups").stories())
    assert groups.names() == ["shop at 127.0.0.1:21811", "shop at 127.0.0.1:21812"]
    assert groups.called("shop") == groups.names()
    assert [line["members"] for line in groups.lines()] == [2, 1]
    (first, second) = groups.names()
    assert groups.rebalances(second)[0]["text"].endswith("owned as assigned by the range assignor")
    assert "orders-2 is owned by no consumer" in groups.rebalances(first)[1]["text"]


def test_a_partition_with_another_owner_is_named() -> None:
    one = b'{"version":1,"subscription":{"t":1},"pattern":"static"}'
    topic = b'{"version":1,"partitions":{"0":[1],"1":[1]}}'
    wire = ZooKeeperWire(7).connect().create("/brokers/topics/t", topic, zxid=1)
    wire.create("/consumers/g/ids/g_a", one, EPHEMERAL, zxid=2)
    wire.create("/consumers/g/owners/t/0", b"g_b-0", EPHEMERAL, zxid=3)
    (line,) = KeptGroups(counted(wire).stories()).rebalances("g")
    assert line["text"] == (
        "g_a joined; t-0 is owned by g_b-0 instead of g_a-0, "
        "t-1 is owned by no consumer instead of g_a-0"
    )


def test_three_real_servers_are_one_ensemble() -> None:
    """Two of them, that is: nobody had a session at the third one."""
    (story,) = read("zookeeper-failover").stories()
    assert len(story.servers) == 2
    assert [line["attached"] for line in story.session_lines()] == [1, 1]


def crowd(wire: ZooKeeperWire, group: str, members: int, zxid: int) -> None:
    one = b'{"version":1,"subscription":{"t":1},"pattern":"static"}'
    for number in range(members):
        thread = b"%s_%d-0" % (group.encode(), number)
        path = f"/consumers/{group}/ids/{group}_{number}"
        wire.create(path, one, EPHEMERAL, zxid=zxid + 3 * number)
        path = f"/consumers/{group}/owners/t/{number}"
        wire.create(path, thread, EPHEMERAL, zxid=zxid + 3 * number + 1)


def test_of_many_members_the_first_changes_are_looked_at() -> None:
    topic = b'{"version":1,"partitions":{%s}}' % b",".join(b'"%d":[1]' % n for n in range(40))
    wire = ZooKeeperWire(7).connect().create("/brokers/topics/t", topic, zxid=1)
    crowd(wire, "small", 3, 10)
    crowd(wire, "large", 40, 1000)
    stories = counted(wire).stories()
    whole = KeptGroups(stories)
    small, large = whole.rebalances("small"), whole.rebalances("large")
    some = KeptGroups(stories, LIMITS._replace(ownership_looks=3_000))
    assert some.rebalances("small") == small
    pairs = list(zip(large, some.rebalances("large"), strict=True))
    same = [one == other for one, other in pairs]
    assert 0 < sum(same) < 40
    assert same == sorted(same, reverse=True)
    for one, other in pairs:
        text = one["text"].partition("; ")
        assert other in (one, {**one, "text": f"{text[0]}; {TOO_MANY}"})
    assert some.members("large") == whole.members("large")
    assert [line["assigned"] for line in whole.members("small")] == [["t-0"], ["t-1"], ["t-2"]]


def test_a_number_of_many_digits_is_no_offset() -> None:
    wire = ZooKeeperWire(7).connect().create("/consumers/g/offsets/t/0", b"5", zxid=1)
    wire.set("/consumers/g/offsets/t/0", b"9" * 500, zxid=2)
    (line,) = KeptGroups(counted(wire).stories()).offsets("g")
    assert (line["committed"], line["commits"]) == (5, 1)


# --- a sample


def test_watch_events_are_counted_beside_requests() -> None:
    pairs, names = traffic("zookeeper.pcap")
    lines = {line["api"]: line for line in statistic(Throughput(), pairs).rows(names)}
    events = lines["zk.event"]
    assert (events["requests"], events["unpaired"], events["failed"]) == (21, 21, 0)
    assert lines["zk.getData"]["unpaired"] == 0


def test_errors_have_the_names_that_zookeeper_gives_them() -> None:
    pairs, names = traffic("zookeeper.pcap")
    errors = statistic(Errors(), pairs)
    by_api = {(line["api"], line["error"]): line["count"] for line in errors.rows(names)}
    assert by_api["zk.exists", "NONODE"] == 6
    assert by_api["zk.auth", "AUTHFAILED"] == 1
    by_code = {line["error"]: line["count"] for line in errors.rows(names, ("code",))}
    assert by_code["NONODE"] == sum(
        count for (_, name), count in by_api.items() if name == "NONODE"
    )


def test_a_node_has_its_history_whoever_told_of_it() -> None:
    zookeeper = statistic(ZooKeeper(), traffic("zookeeper.pcap")[0])
    lines = {line["path"]: line for line in zookeeper.rows()}
    gone = next(line for line in lines.values() if line["state"] == "gone" and line["lives"] == 1)
    kinds = [each["change"] for each in zookeeper.history(gone["path"])]
    assert (kinds[0], kinds[-1]) == ("created", "deleted")
    times = [each["time"] for each in zookeeper.history()]
    assert times == sorted(times)


def test_sessions_end_by_closing_them() -> None:
    lines = statistic(ZooKeeper(), traffic("zookeeper.pcap")[0]).session_lines()
    assert [line["user"] for line in lines] == ["alice", "", ""]
    assert [line["state"] for line in lines] == ["closed", "open", "closed"]
    assert [line["attached"] for line in lines] == [0, 0, 1]


@pytest.mark.parametrize(
    ("path", "top", "expected"),
    [("/a", "/", True), ("/a", "/a", True), ("/ab", "/a", False), ("/a/b", "/a", True)],
)
def test_below(path: str, top: str, expected: bool) -> None:
    assert is_below(path, top) is expected
