"""Records as JSON take the memory of some of them, however many a batch or a capture holds. Each
runs in a process of its own, for only that tells its peak memory."""

import json
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest

from kafkascope.analyzer.bodies.contents import WALKED_BYTES, contents_of, counted
from kafkascope.analyzer.bodies.facts import BodyFacts
from kafkascope.analyzer.exchanges.spool import HELD
from kafkascope.dissectors.records.compression import compress
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch, encode_record
from tests.kit.batches import batch, batch_of
from tests.kit.captures import capture_file
from tests.kit.run import run
from tests.kit.samples import ROOT
from tests.kit.wire import produce

RUN = """
import resource
from kafkascope.analyzer.exchanges.records import RecordField, batch_objects
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.records.records import Record, batches, open_batch
records = [Record(n, 1, b"k", b"v" * 20, ()) for n in range(100_000)]
field = RecordField("produce", "t", None, 0, encode_batch(records), None)
del records
for batch in batches(field.data):
    opened = open_batch(field.data, batch)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = sum(map(len, batch_objects(1, field, batch, opened.records, None, b"\\n")))
print(made >> 20, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_a_batch_of_many_records_takes_less_than_its_text() -> None:
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    text, grown = map(int, done.stdout.split())
    assert text > 20
    assert grown < text / 2


KEYS = encode_record(Record(0, 1, bytes(1000), b"v", ()), 0, 1)
VALUE = encode_record(Record(0, 1, None, bytes(7 << 20), ()), 0, 1)
# Not `getrusage`, which begins with what the process took that started this one.
MEASURED = """
import sys
try:
    {}
finally:
    (line,) = [each for each in open("/proc/self/status") if each.startswith("VmHWM")]
    print(int(line.split()[1]) >> 10, file=sys.stderr)
"""
PEAK = MEASURED.format("from kafkascope.tui.cli import main; main()")
LIBRARY = MEASURED.format(
    "import kafkascope; capture = kafkascope.open(sys.argv[1]); exec(sys.argv[2])"
)
DOCUMENT = """
from kafkascope.tui.document.document import Document
(exchange,) = capture
document = Document(exchange._model, exchange._origin.names)
document.tree("Request").set_all(True)
stack = document.tree("Request").roots[:]
while stack:
    stack += stack.pop().children
document.tree("Records")
"""


def peak(*arguments: str, program: str = PEAK) -> int:
    """Run a command, or another program; return its memory in MB."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stderr.split()[-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "codec", "count", "body"),
    [
        ("records --json", 4, 1, bytes(200 << 20)),
        ("show 1-9", 1, 1, bytes(60 << 20)),
        ("export", 4, 60_000, KEYS),
        ("show 1-9 --json", 4, 8, VALUE),
    ],
    ids=["beyond the limit", "no records", "many", "some with long JSON"],
)
def test_a_capture_of_bombs_takes_bounded_memory(
    command: str, codec: int, count: int, body: bytes, tmp_path: Path
) -> None:
    data = batch_of(codec, count, compress(codec, body * count if count > 1 else body))
    frames = [("client", produce(number, records=data)) for number in range(1, 4)]
    capture = str(capture_file(tmp_path / "bombs.pcapng", frames))
    name, *options = command.split()
    if name == "export":
        options = ["--full", "-o", str(tmp_path / "out.jsonl")]
    assert peak(name, capture, *options) < 300


TEXT = encode_record(Record(0, 1, None, b"a" * (1 << 20), ()), 0, 1)
ONE = encode_record(Record(0, 1, None, bytes(59 << 20), ()), 0, 1)


def below_the_limit(path: Path, record: bytes, batches: int, *, codec: int, apart: bool) -> str:
    """Write a capture of batches of 59 MB: in one exchange, or `apart`, one in each."""
    count = (60 << 20) // len(record)
    data = batch_of(codec, count, compress(codec, record * count))
    fields = [data] * batches if apart else [data * batches]
    frames = [("client", produce(number, records=each)) for number, each in enumerate(fields, 1)]
    return str(capture_file(path, frames))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("codec", "apart"), [(1, False), (2, False), (3, False), (4, False), (4, True)]
)
@pytest.mark.parametrize(
    "command", ["records --json", "export --table records -o .parquet", "ls -Y record.key==x"]
)
def test_batches_below_the_limit_are_in_memory_one_by_one(
    command: str, codec: int, apart: bool, tmp_path: Path
) -> None:
    record = ONE if command.startswith("ls") else TEXT
    capture = below_the_limit(tmp_path / "c.pcapng", record, 6, codec=codec, apart=apart)
    name, *options = command.replace(".parquet", str(tmp_path / "out.parquet")).split()
    assert peak(name, capture, *options) < 300


@pytest.mark.slow
@pytest.mark.parametrize("record", [TEXT, ONE], ids=["text", "one value"])
@pytest.mark.parametrize(
    ("program", "apart", "limit"),
    [
        ("waiting = [e.records() for e in list(capture)]\nfor e in waiting: next(e)", True, 320),
        ("for each in list(capture): print(sum(1 for _ in each.records()))", True, 320),
        ("for batch in capture.to_batches('records'): pass", True, 320),
        (DOCUMENT, False, 300),
    ],
    ids=["merged", "kept", "arrow", "terminal"],
)
def test_exchanges_that_a_program_or_the_terminal_keeps_have_one_budget(
    program: str, apart: bool, limit: int, record: bytes, tmp_path: Path
) -> None:
    capture = below_the_limit(tmp_path / "c.pcapng", record, 10, codec=4, apart=apart)
    assert peak(capture, program, program=LIBRARY) < limit


@pytest.mark.slow
def test_fixtures_of_many_records_take_bounded_memory(tmp_path: Path) -> None:
    capture = below_the_limit(tmp_path / "c.pcapng", TEXT, 6, codec=4, apart=False)
    assert peak("fixture", capture, "-o", str(tmp_path / "out")) < 300


def test_long_values_of_control_characters_are_base64(tmp_path: Path) -> None:
    values = [bytes(2 << 20), b"a" * (2 << 20)]
    records = [Record(number, 1, None, value, ()) for number, value in enumerate(values)]
    frames = [("client", produce(1, records=encode_batch(records, codec=4)))]
    capture = capture_file(tmp_path / "c.pcapng", frames)
    done = run("records", capture, "--json")
    found = [json.loads(line)["value"] for line in done.stdout.splitlines()]
    assert found == [{"base64": b64encode(values[0]).decode()}, values[1].decode()]


@pytest.mark.slow
def test_batches_of_an_exchange_are_not_in_memory_together(tmp_path: Path) -> None:
    data = batch_of(4, 60_000, compress(4, KEYS * 60_000)) * 8
    capture = capture_file(tmp_path / "bombs.pcapng", [("client", produce(1, records=data))])
    assert peak("ls", str(capture), "-Y", 'record.key contains "absent"') < 300


def test_a_line_that_went_through_a_file_is_the_same(tmp_path: Path) -> None:
    """Two batches: the first fits into memory, the second does not."""
    texts = ["first ü", "second \u0085 " + "x" * 900_000]
    count = HELD // 900_000
    made = [encode_record(Record(0, 1, None, text.encode(), ()), 0, 1) for text in texts]
    data = batch_of(4, 1, compress(4, made[0])) + batch_of(4, count, compress(4, made[1] * count))
    capture = capture_file(tmp_path / "c.pcapng", [("client", produce(1, records=data))])
    out = tmp_path / "out.jsonl"
    assert peak("export", str(capture), "--full", "-o", str(out))
    (line,) = out.read_bytes().splitlines()
    assert b"\xc2\x85" not in line
    (topic,) = json.loads(line)["request"]["topic_data"]
    (partition,) = topic["partition_data"]
    first, second = partition["records"]["batches"]
    assert [record["value"] for record in first["records"]] == texts[:1]
    assert [record["value"] for record in second["records"]] == texts[1:] * count


# --- facts of large records fields: totals in place of the bytes, which the frame has -------------


def test_an_exchange_holds_no_second_copy_of_large_records() -> None:
    blob = batch([(None, bytes(WALKED_BYTES))])
    damaged = blob[:-1] + b"x"
    for blobs in ([blob], [damaged], [blob, b""]):
        facts = counted(BodyFacts(blobs=blobs))
        assert not isinstance(facts.blobs, list)
        assert contents_of(facts.blobs) == contents_of(blobs)
    small = BodyFacts(blobs=[batch([(None, b"v")])])
    assert counted(small) is small
