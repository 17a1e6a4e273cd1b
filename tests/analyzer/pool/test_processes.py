"""Workers as processes: commands print the same bytes, and end as one process does."""

import os
import shlex
import signal
import subprocess
from functools import cache
from pathlib import Path
from random import Random

import pytest

from kafkascope.captures.build import Composer
from kafkascope.captures.model import Endpoint
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from tests.analyzer.pool.kit import RUN, here, needs_fork, run
from tests.explosion.turns import Turn, produce, write_capture
from tests.kit import wire
from tests.kit.captures import START_NS, Tape
from tests.kit.samples import CAPTURES, ROOT, SAMPLES

TABLES = "apis connections errors latency partitions rates sizes topics"
COUNTING = (
    *("check", "clients", "cluster", "groups --delivery", "groups", "producers"),
    *(f"stats {table}" for table in TABLES.split()),
)


def busy(path: Path, exchanges: int, connections: int = 6) -> Path:
    """Write a capture with many exchanges on several connections."""
    path.write_bytes(busy_bytes(exchanges, connections))
    return path


@cache
def busy_bytes(exchanges: int, connections: int) -> bytes:
    """Return such a capture, which takes longer to make than to read."""
    rng = Random(exchanges)
    tape = Tape()
    composers = []
    for number in range(connections):
        client = Endpoint(f"10.0.0.{number + 1}", 40000)
        composers.append(Composer(client, Endpoint("10.0.1.2", 9092)))
        tape.add(composers[-1].open())
    for number in range(exchanges):
        composer = rng.choice(composers)
        api, version = rng.choice([("Heartbeat", 3), ("Fetch", 11), ("Metadata", 8)])
        tape.add(composer.send(0, wire.request(api, version, number, f"app-{number % 7}")))
        tape.add(composer.send(1, wire.response(api, version, number)))
    assert tape.frames[0][0] == START_NS
    return tape.pcap()


@needs_fork
@pytest.mark.parametrize("command", ["ls", *COUNTING])
def test_the_output_is_that_of_one_process(command: str, tmp_path: Path) -> None:
    path = busy(tmp_path / "busy.pcap", 600)
    words = [*command.split(), "--json"]
    expected = here(*words, "--jobs", "1", path)
    assert here(*words, "--jobs", "3", path) == expected
    sample = SAMPLES / "transactions.pcap"
    assert here(*words, "--jobs", "2", sample) == here(*words, "--jobs", "1", sample)
    path = busy(tmp_path / "one.pcap", 400, connections=1)
    expected = here(*words, "--jobs", "1", path)
    assert here(*words, "--jobs", "2", path) == expected


@needs_fork
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
@pytest.mark.parametrize("words", ["--full", "", "--table records", "-Y 'api == Fetch'"])
def test_exports_are_those_of_one_process(words: str, suffix: str, tmp_path: Path) -> None:
    if words == "--full" and suffix == "csv":
        words = "--table records --columns topic,exchange,key,value"
    paths = [busy(tmp_path / "busy.pcap", 300)]
    paths += [SAMPLES / "transactions.pcap"] if words else sorted(SAMPLES.glob("*.pcap"))[::4]
    paths += sorted(CAPTURES.glob("*.pcap"))[:9:3] if words == "--full" else []
    for path in paths:
        told = []
        for jobs in ("1", "3"):
            out = tmp_path / f"{jobs}.{suffix}"
            done = here("export", *shlex.split(words), "--jobs", jobs, "-o", out, path)
            told.append((done[0], done[2].replace(str(out).encode(), b"OUT"), out.read_bytes()))
        assert told[0] == told[1]


@needs_fork
@pytest.mark.parametrize(
    "words",
    [
        *("", "--json", "--format csv --headers", "--columns topic,offset", "-n 5 --json"),
        "-Y topic==java-3.9.2.tx",
    ],
)
def test_records_are_those_of_one_process(words: str, tmp_path: Path) -> None:
    paths = [SAMPLES / "transactions.pcap"]
    paths += sorted(CAPTURES.glob("*.pcap"))[: 9 if words == "--json" else 2]
    paths += [busy(tmp_path / "busy.pcap", 300)]
    for path in paths:
        given = ("records", *words.split(), path, "--jobs")
        assert here(*given, "3") == here(*given, "1")


LISTED = (
    "",
    "-t r",
    "--columns number,conn,client,time,topic,result,summary",
    "--format tsv",
    "--format csv",
    "--json --columns number,conn,latency,topic",
    "--format json",
    "--format json -Y latency<0",
    "--format csv --columns api,request.bytes,request.client_id -Y api==Fetch",
    "-T fields -e frame.number -e kafka.api_key -e kafka.topic_name -e kafka.error -E header=y",
    "-T fields -e number -e request.topics.partitions.partition -E separator=% -E quote=d",
    "--color always -n 7",
)


@needs_fork
@pytest.mark.parametrize("words", LISTED)
def test_every_form_of_ls_is_that_of_one_process(words: str, tmp_path: Path) -> None:
    paths = [busy(tmp_path / "busy.pcap", 300)]
    paths += sorted(SAMPLES.glob("*.pcap*"))[:: 4 if "topic" in words else 9]
    for path in paths:
        given = ("ls", *words.split(), path, "--jobs")
        assert here(*given, "3") == here(*given, "1")


@needs_fork
def test_filters_are_judged_by_workers(tmp_path: Path) -> None:
    path = busy(tmp_path / "busy.pcap", 600)
    for text in ("api == Heartbeat", "latency > 1ms or request.bytes > 50", "number < 100"):
        words = ("ls", "--json", "-Y", text, "-v")
        assert here(*words, "--jobs", "2", path) == here(*words, "--jobs", "1", path)
    words = ("check", "-Y", "api == Fetch")
    assert here(*words, "--jobs", "2", path) == here(*words, "--jobs", "1", path)


@needs_fork
def test_what_needs_one_process_is_read_by_one(tmp_path: Path) -> None:
    """Two connections without a sign of Kafka, on a port that a third one shows to be Kafka's."""
    tape = Tape()
    sent = (wire.request("Heartbeat", 3, 1, "app"), b"\0\0\0\x05hello", b"?")
    for number, data in enumerate(sent):
        composer = Composer(Endpoint("10.0.0.1", 40000 + number), Endpoint("10.0.1.2", 9999))
        tape.add(composer.open())
        tape.add(composer.send(0, data))
        if not number:
            tape.add(composer.send(1, wire.response("Heartbeat", 3, 1)))
        tape.add(composer.close(0) + composer.close(1))
    (tmp_path / "a.pcap").write_bytes(tape.pcap())
    words = ("ls", "--json", "-v", tmp_path / "a.pcap", "--jobs")
    assert run(*words, "2") == run(*words, "1")


@needs_fork
def test_damage_is_told_once(tmp_path: Path) -> None:
    path = busy(tmp_path / "busy.pcap", 300)
    path.write_bytes(path.read_bytes()[:-7])
    code, out, err = run("ls", "--json", "--jobs", "2", path)
    assert (code, out, err) == run("ls", "--json", "--jobs", "1", path)
    assert code == 4
    assert err.count(b"cut short") == 1


def _children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return list(map(int, text.split()))


LISTED = ("ls", "--json", "-Y", "api", "--columns", "number,state,api,latency")
"""One process writes whole exchanges faster than several."""

on_linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")


def _started(path: Path, *words: str) -> tuple[subprocess.Popen[bytes], bytes, list[int]]:
    """A command with workers that has printed its first line and waits for its reader."""
    process = subprocess.Popen(
        [*RUN, *LISTED, "--jobs", "2", *words, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd=ROOT,
    )
    first = process.stdout.readline()
    workers = _children(process.pid)
    assert len(workers) == 2
    return process, first, workers


def _gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return busy(tmp_path_factory.mktemp("large") / "busy.pcap", 20_000)


@needs_fork
@on_linux
def test_a_killed_worker_costs_nothing(large: Path) -> None:
    process, first, workers = _started(large)
    os.kill(workers[0], signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, first + out, err) == run(*LISTED, "--jobs", "1", large)


@needs_fork
@on_linux
def test_workers_end_with_their_parent(large: Path) -> None:
    process, _, workers = _started(large)
    process.kill()
    process.communicate()
    for _ in range(3000):
        if all(map(_gone, workers)):
            break
        signal.sigtimedwait((), 0.02)
    assert all(map(_gone, workers))


@needs_fork
@on_linux
def test_a_reader_that_leaves_ends_all(large: Path) -> None:
    process, _, workers = _started(large)
    with process:
        process.stdout.close()
        process.wait(timeout=300)
    assert all(map(_gone, workers))


@needs_fork
@on_linux
def test_interrupted_it_ends_where_it_is(large: Path) -> None:
    process, first, workers = _started(large)
    for each in (process.pid, *workers):  # as a terminal does
        os.kill(each, signal.SIGINT)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    whole = run(*LISTED, "--jobs", "1", large)[1].splitlines()
    lines = (first + out).splitlines()
    assert 0 < len(lines) < len(whole)
    done = [line for line in lines if b'"state":"answered"' in line]
    assert done == whole[: len(done)]


@needs_fork
@pytest.mark.parametrize("command", ["groups --delivery", "producers"])
def test_numbers_of_messages_that_look_like_provisional_ones_stay(
    command: str, tmp_path: Path
) -> None:
    # It ended with a KeyError, or an IndexError.
    path = tmp_path / "a.pcapng"
    write_capture(path, (strange(number) for number in range(4)))
    expected = here(*command.split(), "--jobs", "1", path)
    assert here(*command.split(), "--jobs", "2", path) == expected


def strange(number: int) -> list[Turn]:
    """Exchanges with offsets and producers of more than 62 bits."""
    turns: list[Turn] = []
    for index in range(60):
        large = ((1 << 62) + 12_345, (3 << 61) + 99_999)[index % 2]
        parts = [{"partition_index": 0, "committed_offset": large}]
        topics = [{"name": f"t{number}", "partitions": parts}]
        group = {"group_id": f"g{number}", "generation_id_or_member_epoch": 1, "member_id": "m"}
        turns.append((0, wire.request("OffsetCommit", 2, 2 * index, **group, topics=topics)))
        topics = [{"name": f"t{number}", "partitions": [{"partition_index": 0}]}]
        turns.append((1, wire.response("OffsetCommit", 2, 2 * index, topics=topics)))
        batch = encode_batch(
            [Record(0, 1, None, b"x", ())], producer_id=large, producer_epoch=0, base_sequence=0
        )
        turns += produce(2 * index + 1, batch, topic=f"t{number}")
    return turns
