"""Ladders, matrices and lanes: lines of text about real traffic."""

import pytest

from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.clients import Usage
from kafkascope.analyzer.statistics.groups.model import LaneMark, Member, Rebalance, Story
from kafkascope.analyzer.statistics.model import Line
from kafkascope.tui.screens import evidence
from kafkascope.tui.screens.clients import everybody, matrix, summary
from kafkascope.tui.screens.connections import indexes_of, ladder
from kafkascope.tui.screens.groups import lag_line, lanes
from kafkascope.tui.screens.topics import RecordKeys
from tests.kit.samples import SAMPLES, TLS
from tests.tui.pilots import ReadScene

SECOND = 1_000_000_000


def texts(lines):
    return ["".join(text for text, _ in line) for line in lines]


@pytest.fixture(scope="module")
def sasl() -> ReadScene:
    return ReadScene(SAMPLES / "sasl.pcap")


@pytest.fixture(scope="module")
def old() -> ReadScene:
    return ReadScene(SAMPLES / "java-old.pcap")


def steps(scene: ReadScene, line: Line) -> list[tuple[str, int | None]]:
    found = ladder(scene.store, line, Times("u"))
    return [("".join(text for text, _ in each.spans), each.number) for each in found]


def connections(scene: ReadScene) -> list[Line]:
    return scene.statistics["connections"].rows()


def test_a_ladder_goes_through_the_phases_of_its_connection(sasl: ReadScene) -> None:
    told = [text for text, _ in steps(sasl, connections(sasl)[0])]
    phases = [text[14:24].strip() for text in told]
    assert [phase for phase in phases if phase][:3] == ["tcp", "versions", "sasl"]
    assert "work" in phases
    assert phases[-1] == "end"
    assert "handshake" in told[0]
    assert "──▶" in told[1]
    assert "closed: client fin" in told[-1]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "tls13-mutual",
            [
                "the client offers TLS 1.3, TLS 1.2, 59 suites",
                "TLS 1.3 TLS_AES_256_GCM_SHA384",
                "the client's certificate: CN=client",
            ],
        ),
        (
            "failed13-expired",
            [
                "the broker's certificate: CN=expired for 127.0.0.1, issued by CN=tests, "
                "valid from 2026-11-14 to 2026-11-21",
                "alert of the client: certificate_unknown",
            ],
        ),
        ("tls13-keyupdate-client", ["2 KeyUpdates", "18 KeyUpdates"]),
        ("tls13-https", ["inside: HTTP, no Kafka"]),
    ],
)
def test_a_ladder_shows_the_tls_of_its_connection(name: str, told: list[str]) -> None:
    scene = ReadScene(TLS / f"{name}.pcap.gz", TLS / f"{name}.keys")
    found = [text for line in connections(scene) for text, _ in steps(scene, line)]
    assert set(told) <= {text[24:] for text in found if text[14:17] == "tls"}


def test_a_ladder_says_why_tls_cannot_be_read() -> None:
    scene = ReadScene(TLS / "tls13-mutual.pcap.gz")
    told = steps(scene, connections(scene)[0])
    assert any("(no-key-log): no key log was given (--keylog)" in text for text, _ in told)


def test_lines_of_a_ladder_know_their_exchanges(sasl: ReadScene) -> None:
    session = sasl.store.session
    first = connections(sasl)[0]
    numbers = [number for _, number in steps(sasl, first) if number is not None]
    place = session.index_of(numbers[0])
    connection = session.connections[session.columns["connection"][place]].number
    assert numbers == [
        session.columns["number"][index] for index in indexes_of(sasl.store, connection)
    ]
    assert len(numbers) == first["requests"]


def test_a_connection_that_is_none_has_no_ladder(sasl: ReadScene) -> None:
    assert not indexes_of(sasl.store, 10**9)
    others = {**connections(sasl)[0], "connection": "(others)"}
    assert len(ladder(sasl.store, others, Times("u"))) == 1


def usages(scene: ReadScene) -> list[Usage]:
    return scene.statistics["clients"].usages()


def test_versions_that_a_release_lacks_stand_out(old: ReadScene) -> None:
    usage = usages(old)[0]
    drawn = matrix(usage, "4.0.0", 150)
    assert any(role == "!" and "▼" in text for line in drawn for text, role in line)
    fetch = next(text for text in texts(drawn) if text.strip().startswith("Fetch"))
    assert "4-17" in fetch
    assert any("breaks: uses Fetch" in text for text in texts(drawn))
    first = texts(summary(usage, "4.0.0", "4.0.0"))
    assert "breaks on 4.0.0" in first[1]


def test_without_a_release_nothing_is_judged(old: ReadScene) -> None:
    drawn = matrix(usages(old)[0], None, 150)
    assert not any(role == "!" and "█" in text for line in drawn for text, role in line)
    assert not any("breaks:" in text for text in texts(drawn))


def test_all_clients_at_once_have_a_column_for_each_api(old: ReadScene) -> None:
    columns, lines = everybody(usages(old))
    assert {column.title for column in columns} >= {"Client", "Fetch", "Produce"}
    fetch = next(column.name for column in columns if column.title == "Fetch")
    assert {line.get(fetch) for line in lines} >= {"3"}


@pytest.fixture(scope="module")
def codecs() -> ReadScene:
    return ReadScene(SAMPLES / "java-codecs.pcap")


def test_keys_of_records_are_counted(codecs: ReadScene) -> None:
    topics = codecs.statistics["topics"].rows(codecs.store.session.context.names)
    topic = next(line["topic"] for line in topics if line["codecs"] == ["zstd"])
    keys = RecordKeys(codecs.store, topic, evidence.of_topic({"topic": topic}))
    assert texts(keys.lines()) == ["Reading records ..."]
    while not keys.over:
        keys.advance(0.05)
    line = next(each for each in topics if each["topic"] == topic)
    assert keys.records == line["produced_records"] + line["fetched_records"]
    assert keys.keyless + sum(keys.found.values()) == keys.records
    said = "\n".join(texts(keys.lines()))
    assert "most frequent key" in said
    assert "without key" in said


def test_a_key_that_moves_between_partitions_stands_out(codecs: ReadScene) -> None:
    keys = RecordKeys(codecs.store, "none", 'topic == "none"')
    for partition, key in [(0, b"a"), (1, b"a"), (1, b"\xff\x00"), (0, None), (0, b"")]:
        keys._count(key, b"value", partition)
    said = "\n".join(texts(keys.lines()))
    assert "1 key went to more than one partition" in said
    assert "0xff00" in said
    assert "without key  20 %" in said


def test_lag_over_time_is_a_line_of_bars() -> None:
    points = [(0, 0), (10, 5), (15, 10), (31, 0)]
    line = lag_line(points)
    assert len(line) == 16
    assert line[0] == "·"
    assert "█" in line
    assert line[-1] == "·"
    assert lag_line([(0, 3)]) == ""


def story() -> Story:
    first = Member("m1", client_id="a", host="10.0.0.4", text="left")
    first.marks = [LaneMark(0, SECOND, "J"), LaneMark(2 * SECOND, 60 * SECOND, "=")]
    second = Member("m2", client_id="b", host="10.0.0.7", state="expired", text="evicted")
    second.marks = [
        LaneMark(30 * SECOND, 31 * SECOND, "J"),
        LaneMark(59 * SECOND, 59 * SECOND, "x"),
    ]
    rebalances = [
        Rebalance(1, 0, SECOND, "formed", "a formed the group", 1, "a", 7),
        Rebalance(2, 30 * SECOND, 33 * SECOND, "joined", "b joined", 2, "b", 9),
    ]
    return Story("g", "classic", "", "range", "1 -> 2", rebalances, [first, second], 0, 60 * SECOND)


def clock(time_ns: int) -> str:
    return f"{time_ns // SECOND}s"


def test_lanes_show_each_member_and_where_the_cursor_is() -> None:
    told = story()
    drawn = lanes(told, 120, clock, shown=told.rebalances[1])
    lines = texts(drawn)
    assert "2 rebalances" in lines[0]
    assert "▼" in lines[2]
    assert lines[2].index("▼") == lines[4].index("J")
    assert lines[3].lstrip().startswith("c1 a")
    assert "evicted" in lines[4]
    assert ("  evicted", "!") in drawn[4]


def test_a_part_of_the_time_leaves_out_what_is_elsewhere() -> None:
    told = story()
    near = texts(lanes(told, 120, clock, shown=told.rebalances[1], zoomed=True))
    assert near[3].count("J") == 0  # the first member joined long before
    assert "J" in near[4]
    assert "x" not in near[4][: near[4].index("evicted")]


@pytest.mark.parametrize("width", [10, 40, 80, 200])
def test_lanes_fit(width: int) -> None:
    for line in texts(lanes(story(), width, clock))[2:-1]:
        assert len(line) <= max(width, 24)
