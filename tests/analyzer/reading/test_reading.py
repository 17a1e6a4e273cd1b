"""What commands make of a capture: which exchanges a filter chooses, and how the command ends."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from struct import pack

import pytest

from kafkascope.analyzer.commands import cut
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.limits import LIMITS, ConversationLimits
from kafkascope.analyzer.exchanges import offline
from kafkascope.analyzer.pipeline import tasks
from kafkascope.analyzer.reading.remarks import unread
from kafkascope.analyzer.transform.cut import Cutting
from kafkascope.analyzer.transform.limits import LIMITS as TRANSFORM_LIMITS
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.model import Connection, Endpoint, HandshakeResult, Tls
from tests.kit.captures import Tape, capture_file, late_names
from tests.kit.run import lines_of, run
from tests.kit.samples import CAPTURES, SAMPLES, rows_of
from tests.kit.wire import beat, heartbeat, request, response


@pytest.fixture
def late(tmp_path: Path) -> Path:
    return late_names(tmp_path / "late.pcapng")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("topic == orders", ["1", "2"]),
        ("not topic == orders", ["3"]),
        ('"orders"', ["1", "2"]),
        ("topic == orders and api == Fetch", ["1"]),
    ],
)
def test_topics_are_found_by_names_that_come_late(
    late: Path, text: str, numbers: list[str]
) -> None:
    done = run("ls", late, "-Y", text, "--columns", "number,topic")
    assert done.exit_code == 0
    lines = [line.split("\t") for line in done.stdout.splitlines()[1:]]
    assert [line[0] for line in lines] == numbers
    assert all(line[1] in ("orders", "") for line in lines)


def test_marks_and_findings_are_refused_where_there_are_none(late: Path) -> None:
    done = run("ls", late, "-Y", "marked or finding == x")
    assert done.exit_code == 2
    assert "terminal UI" in done.stderr


# --- what is said about the capture as a whole ---------------------------------------------------


FRAMES = [
    frame
    for number in range(1, 6)
    for frame in (("client", heartbeat(number)), ("broker", beat(number)))
]


def test_a_capture_that_the_snaplen_cut_is_partial(tmp_path: Path) -> None:
    path = capture_file(tmp_path / "cut.pcapng", FRAMES, snaplen=80)
    for options in ([], ["-q"]):
        done = run("ls", path, *options)
        assert done.exit_code == 4
        assert done.stdout
        assert "snaplen" in done.stderr
        assert "tcpdump -s 0" in done.stderr


@pytest.mark.parametrize("bulk", [False, True])
def test_packets_that_a_mirror_cut_are_not_the_snaplen_s(tmp_path: Path, bulk: bool) -> None:
    """The frames are whole: a snaplen would have made them longer on the wire."""
    frames = FRAMES * 40 if bulk else FRAMES
    path = capture_file(tmp_path / "cut.pcapng", frames, snaplen=80, mirrored=True)
    for command in ("ls", "check"):
        done = run(command, path)
        assert "mirror" in done.output
        assert "snaplen" not in done.output
        assert "-s 0" not in done.output
    assert "MTU" in run("check", path).output


def damaged(path: Path, at: float, *, size: int = 4) -> Path:
    data = bytearray(path.read_bytes())
    begin = int(at * len(data))
    data[begin : begin + size] = b"\xff" * size
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("command", ["ls", "check", "connections"])
def test_nothing_is_claimed_about_what_could_not_be_read(tmp_path: Path, command: str) -> None:
    with Source([str(SAMPLES / "librdkafka.pcap")]) as source:
        frames = [(each.time_ns, each.data) for each in source.packets()]
    made = Tape()
    made.frames = frames[:2]
    path = tmp_path / "a.pcap"
    path.write_bytes(made.pcap() + b"\xff" * 4000)
    done = run(command, path)
    assert "damaged at byte" in done.output
    assert "2 packets that could be read" in done.output
    assert "no data was sent" not in done.output
    assert "unanswered" not in done.output.lower().replace("unanswered\t", "")


@pytest.mark.parametrize("filled", [b"\0", b"\xff", b"i"])
def test_a_packet_that_damage_reaches_into_is_nobodys_fault(tmp_path: Path, filled: bytes) -> None:
    """A crash leaves zeros from the middle of a record on."""
    path = tmp_path / "a.pcap"
    data = (SAMPLES / "rebalance.pcap").read_bytes()
    third = len(data) // 3
    path.write_bytes(data[:third] + filled * (len(data) - third))
    done = run("check", path)
    assert "damaged at byte" in done.output
    for name in ("undecodable", "request-header", "framing-lost"):
        assert name not in done.output


@pytest.mark.parametrize("missing", [0, 10])
def test_a_missing_end_excuses_nothing(tmp_path: Path, missing: int) -> None:
    """The record that is not whole is not read: a message that cannot be is the client's."""
    body = heartbeat(1)[4:-4]
    frames = [("client", pack(">I", len(body)) + body), *FRAMES[2:]]
    path = capture_file(tmp_path / "a.pcapng", frames)
    path.write_bytes(path.read_bytes()[: -missing or None])
    found = [run("check", path, "--jobs", jobs).output for jobs in (1, 2)]
    assert all("undecodable" in each or "framing" in each for each in found), found


def test_bytes_in_the_damaged_part_are_no_fault_of_the_capture(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    data = (SAMPLES / "librdkafka.pcap").read_bytes()
    path.write_bytes(data[:60_000] + data[61_000:])
    done = run("check", path)
    assert "capture-gaps" in done.output
    assert "file is damaged" in done.output.replace("\n    ", " ")
    assert "-B 65536" not in done.output


def test_cut_packets_of_others_do_not_matter(tmp_path: Path) -> None:
    path = capture_file(tmp_path / "whole.pcapng", FRAMES, snaplen=2000)
    done = run("ls", path)
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("side", "words"),
    [("client", "requests without responses"), ("broker", "responses without requests")],
)
def test_one_direction_alone_is_said(tmp_path: Path, side: str, words: str) -> None:
    frames = [frame for frame in FRAMES if frame[0] == side]
    done = run("ls", capture_file(tmp_path / "one.pcapng", frames, only=side))
    assert done.exit_code == 0
    assert "only one direction" in done.stderr
    assert words in done.stderr
    assert "only one direction" not in run("ls", tmp_path / "one.pcapng", "-q").stderr
    # Acknowledgements of what the other side sent show how much is missing.
    found = run("check", capture_file(tmp_path / "half.pcapng", FRAMES, only=side), "--json")
    gaps = [each for each in lines_of(found) if each["name"] == "capture-gaps"]
    assert [each["advice"][:35] for each in gaps] == ["Capture where both directions pass,"]


def test_both_directions_need_no_remark(tmp_path: Path) -> None:
    done = run("ls", capture_file(tmp_path / "both.pcapng", FRAMES))
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "options",
    [("-o", "x.csv"), ("-o", "x.jsonl", "--table", "records"), ("-o", "-", "--format", "csv")],
)
def test_full_bodies_are_refused_where_they_have_no_place(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = capture_file(tmp_path / "both.pcapng", FRAMES)
    done = run("export", path, "--full", *options)
    assert done.exit_code == 2
    assert "--full needs --format" in done.stderr
    assert not Path("x.csv").exists()


def test_connections_without_a_byte_are_called_so(tmp_path: Path) -> None:
    path = capture_file(tmp_path / "probe.pcapng", [])
    for command in ("ls", "check"):
        done = run(command, path)
        assert done.exit_code == 0
        assert "no data was sent in the connection" in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["\0orders", "\0ab", "\0" + "ab" * 17, "\0" + 32 * "z"])
def test_a_topic_may_be_called_anything(tmp_path: Path, name: str) -> None:
    partition = {"error_code": 3, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]}
    topic = {"error_code": 3, "name": name, "partitions": [partition]}
    data = [{"name": name, "partition_data": [{"index": 0, "records": None}]}]
    frames = [
        ("client", request("Metadata", 7, 1, topics=[{"name": name}])),
        ("broker", response("Metadata", 7, 1, topics=[topic])),
        ("client", request("Produce", 7, 2, acks=-1, topic_data=data)),
    ]
    path = capture_file(tmp_path / "odd.pcapng", frames)
    report = tmp_path / "odd.md"
    for command in (["stats", "partitions", path], ["cluster", path], ["check", path]):
        assert run(*command).exit_code in (0, 1)
    assert run("report", path, "-o", report).exit_code == 0


TLS = CAPTURES / "tls-only.pcap"
LIBRARIES = SAMPLES / "libraries.pcap"
SHOP = CAPTURES / "shop.pcap.zst"


def remarks_of(*words: str) -> list[str]:
    """What is said of TLS."""
    done = run(*words)
    assert done.exit_code in (0, 1), done.output
    return [line for line in done.stderr.splitlines() if "TLS" in line]


@pytest.mark.parametrize("command", [("ls",), ("records",), ("stats", "apis"), ("clients",)])
def test_tls_sessions_of_brokers_are_told_once_and_shortly(command: tuple[str, ...]) -> None:
    (line,) = remarks_of(*command, str(LIBRARIES), str(TLS))
    assert len(line.removeprefix("kafkascope: ")) <= 100
    assert "proxy" in line


def test_with_a_key_log_the_place_of_the_reasons_is_told() -> None:
    encrypted = CAPTURES / "tls"
    log = ("--keylog", str(encrypted / "tls13-missing-key.keys"))
    (line,) = remarks_of("ls", str(encrypted / "tls13-missing-key.pcap.gz"), *log)
    assert line.endswith("cannot be decrypted: see `kafkascope connections` for the reasons")


@pytest.mark.parametrize(
    "words",
    [
        ("ls", "-Y", "api == Fetch"),
        ("ls", "-c", "3"),
        ("show", "12"),
        ("check", "--rule", "tls-opaque"),
    ],
)
def test_where_tls_hides_nothing_that_was_asked_for_it_is_not_told(words: tuple[str, ...]) -> None:
    command, *more = words
    numbers = [more.pop()] if command == "show" else []
    assert remarks_of(command, str(LIBRARIES), str(TLS), *numbers, *more) == []


def test_what_is_not_found_may_be_in_tls() -> None:
    assert len(remarks_of("ls", str(LIBRARIES), str(TLS), "-Y", "api == Vote")) == 1


def test_a_hello_that_no_broker_answered_hides_nothing() -> None:
    assert remarks_of("ls", str(SHOP)) == []


def test_tls_between_others_is_none_of_kafka() -> None:
    context, broker = Context(), Endpoint("10.0.0.1", 9092)
    context.brokers.add(broker)
    failed = Tls(HandshakeResult("alert"))
    for server, tls, sizes in (
        (Endpoint("10.0.0.2", 443), None, [900, 4000]),
        (Endpoint("10.0.0.1", 9999), None, [900, 4000]),
        (broker, failed, [900, 4000]),
        (broker, None, [200, 7]),
    ):
        connection = Connection(1, Endpoint("10.0.0.9", 40_000), server, 0, tls=tls)
        connection.bytes[:] = sizes
        context.not_kafka("TLS: ...", connection)
    assert unread(context) == 1


def test_a_report_tells_of_tls_itself(tmp_path: Path) -> None:
    target = tmp_path / "r.md"
    assert remarks_of("report", str(LIBRARIES), str(TLS), "-o", str(target)) == []
    assert "TLS connection" in target.read_text()


# --- what is left out is said ---------------------------------------------------------------------


DEMO = SAMPLES / "demo.pcap.zst"
ZOOKEEPER = CAPTURES / "zookeeper-groups.pcapng.gz"


def limited(limits: ConversationLimits) -> Callable[..., Context]:
    """What makes a context with these limits in place of its own."""

    def made(decode_as: Iterable[int] = (), *_: object) -> Context:
        return Context(decode_as, limits)

    return made


BODIES = LIMITS.bodies
FEW_TOPICS = LIMITS._replace(topics=LIMITS.topics._replace(names=2))
FEW_LOG_ENDS = LIMITS._replace(bodies=BODIES._replace(log_ends=0))
FEW_PARTITIONS = LIMITS._replace(bodies=BODIES._replace(session_partitions=0))
FEW = {
    "too many topics have an id": FEW_TOPICS,
    "brokers were advertised": LIMITS._replace(bodies=BODIES._replace(nodes=1)),
    "endpoints answered": LIMITS._replace(endpoints=1),
    "too many partitions are fetched": FEW_PARTITIONS,
}


def said(*words: str) -> str:
    return run(*words, codes=[0]).stderr


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("sentence", FEW)
def test_a_sentence_says_what_was_left_out(
    sentence: str, jobs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sentence not in said("ls", str(DEMO), "--jobs", jobs)
    for module in (offline, tasks):
        monkeypatch.setattr(module, "Context", limited(FEW[sentence]))
    assert sentence in said("ls", str(DEMO), "--jobs", jobs)


def test_log_ends_that_were_forgotten_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline, "Context", limited(FEW_LOG_ENDS))
    assert "too many partitions are fetched" in said("ls", str(DEMO))


def test_tables_say_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = str(tmp_path / "out")
    monkeypatch.setattr(tasks, "Context", limited(FEW_TOPICS))
    assert "too many topics" in said("spark", str(DEMO), "-o", out, "--engine", "plain")
    monkeypatch.undo()
    assert "too many topics" in said("stats", "apis", out)


def test_handshakes_that_were_forgotten_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "cut", str(ZOOKEEPER), "-Y", 'api == "zk.closeSession"', "-o"
    assert "written without the handshakes" not in said(*words, str(tmp_path / "whole.pcapng"))
    few = partial(Cutting, limits=TRANSFORM_LIMITS._replace(handshakes=1))
    monkeypatch.setattr(cut, "Cutting", few)
    sentence = "too many: 4 connections to ZooKeeper"
    assert sentence in said(*words, str(tmp_path / "cut.pcapng"))
    # Of five.
    assert [row.api for row in rows_of(tmp_path / "cut.pcapng")].count("zk.connect") == 1
