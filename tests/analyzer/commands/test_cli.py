"""ls, show, records and export as users run them: what goes where, and how each ends."""

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkascope.tui.cli import main
from tests.kit.samples import ROOT

SAMPLES = ROOT / "captures" / "samples"
DEMO = str(SAMPLES / "kafka-python.pcap")
SASL = str(SAMPLES / "sasl.pcap")
RUN = [sys.executable, "-c", "from kafkascope.tui.cli import main; main(prog_name='kafkascope')"]
ENV = {**os.environ, "TZ": "UTC", "TERM": "xterm"}
ENV.pop("COLUMNS", None)  # it would stand for the terminal's width
ENV.pop("NO_COLOR", None)


@pytest.fixture(autouse=True, scope="module")
def utc() -> Iterator[None]:
    """The time zone in which commands print times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def run(*args: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a command, in this process: a program takes a third of a
    second to start."""
    done = CliRunner().invoke(main, args, env={"COLUMNS": None, "NO_COLOR": None})
    return done.exit_code, done.stdout, done.stderr


def run_program(*args: str, stdin: bytes | None = None) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a command in a process of its own."""
    done = subprocess.run([*RUN, *args], input=stdin, capture_output=True, cwd=ROOT, env=ENV)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def objects(*args: str) -> list[dict[str, Any]]:
    """The JSON lines of a command that ends well."""
    code, out, err = run(*args)
    assert (code, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture(scope="module")
def exchanges() -> list[dict[str, Any]]:
    return objects("ls", DEMO, "--json")


# --- ls -----------------------------------------------------------------------------------------


def test_ls_json_is_one_exchange_a_line(exchanges: list[dict[str, Any]]) -> None:
    assert {each["schema"] for each in exchanges} == {"exchange/1"}
    assert sorted(each["number"] for each in exchanges) == list(range(1, len(exchanges) + 1))
    assert all(each["undecoded"] == [] for each in exchanges)


def test_a_file_alone_is_listed(exchanges: list[dict[str, Any]]) -> None:
    code, out, err = run(DEMO)
    assert (code, err) == (0, "")
    header, *lines = out.splitlines()
    assert header.split("\t")[:3] == ["No.", "Time", "Client"]
    assert len(lines) == len(exchanges)
    # In a pipe nothing is cut, padded or coloured.
    assert "\x1b" not in out
    assert "…" not in out
    assert all("  " not in line for line in lines)


def test_stdin_and_gz_give_the_same(tmp_path: Path, exchanges: list[dict[str, Any]]) -> None:
    data = Path(DEMO).read_bytes()
    packed = tmp_path / "demo.pcap.gz"
    packed.write_bytes(gzip.compress(data))
    code, out, _ = run_program("ls", "-", "--json", stdin=data)
    assert code == 0
    numbers = [each["number"] for each in exchanges]
    assert [json.loads(line)["number"] for line in out.splitlines()] == numbers
    assert [each["number"] for each in objects("ls", str(packed), "--json")] == numbers


def test_filters_choose(exchanges: list[dict[str, Any]]) -> None:
    wanted = [each["number"] for each in exchanges if each["api"] == "Produce"]
    found = objects("ls", DEMO, "--json", "-Y", "kafka.api_key == Produce")
    assert [each["number"] for each in found] == wanted
    assert wanted
    code, out, err = run("ls", DEMO, "-Y", "number > 100000")
    assert (code, out) == (0, "")
    assert f"0 of {len(exchanges)} exchanges match" in err


def test_sort_and_top(exchanges: list[dict[str, Any]]) -> None:
    slow = objects("ls", DEMO, "--json", "--sort", "latency", "-n", "3")
    answered = [each["latency_ns"] for each in exchanges if each["latency_ns"] is not None]
    assert [each["latency_ns"] for each in slow] == sorted(answered)[:-4:-1]
    up = objects("ls", DEMO, "--json", "--sort", "+latency", "-n", "1")
    assert up[0]["latency_ns"] == min(answered)
    numbers = [each["number"] for each in objects("ls", DEMO, "--json", "--sort", "number")]
    assert numbers == sorted(numbers)


def test_count_stops(exchanges: list[dict[str, Any]]) -> None:
    assert objects("ls", DEMO, "--json", "-c", "2") == exchanges[:2]


def test_time_ranges_are_half_open(exchanges: list[dict[str, Any]]) -> None:
    third = sorted(each["time"] for each in exchanges)[2]
    late = objects("ls", DEMO, "--json", "--from", third)
    early = objects("ls", DEMO, "--json", "--to", third)
    assert [e["time"] >= third for e in late] == [True] * (len(exchanges) - 2)
    assert len(early) == 2
    assert len(objects("ls", DEMO, "--json", "--from", "-0ms")) == 1


def test_time_formats() -> None:
    def times(code: str) -> list[str]:
        _, out, _ = run("ls", DEMO, "-t", code, "--sort", "number", "-n", "2")
        return [line.split("\t")[1] for line in out.splitlines()[1:]]

    first = objects("ls", DEMO, "--json", "--sort", "number", "-n", "1")[0]["time"]
    assert times("u")[0] == first[11:23]
    assert times("ud")[0] == first[:23].replace("T", " ")
    assert times("a") == times("u")  # TZ is UTC here
    assert float(times("r")[0]) < float(times("r")[1]) < 60
    assert float(times("e")[0]) > 1_600_000_000


def test_tshark_fields() -> None:
    code, out, _ = run(
        *("ls", DEMO, "-T", "fields", "-e", "number", "-e", "kafka.api_key", "-e", "topic"),
        *("-E", "header=y", "-E", "separator=;", "-Y", "api == Metadata", "--sort", "number"),
    )
    assert code == 0
    header, first, *_ = out.splitlines()
    assert header == "number;kafka.api_key;topic"
    assert first.split(";")[1] == "3"


def test_columns_and_formats() -> None:
    found = objects("ls", DEMO, "--json", "--columns", "number,api,latency", "-c", "1")
    assert list(found[0]) == ["number", "api", "latency"]
    code, out, _ = run("ls", DEMO, "--format", "tsv", "--columns", "no,error", "-c", "1")
    assert (code, out.splitlines()[0]) == (0, "number\terror")
    code, out, _ = run("ls", DEMO, "--format", "json", "-c", "3")
    assert len(json.loads(out)) == 3
    code, out, _ = run("ls", DEMO, "--format", "json", "-Y", "number > 100000")
    assert json.loads(out) == []
    rows = list(csv.DictReader(io.StringIO(run("ls", DEMO, "--format", "csv")[1])))
    assert rows[0]["state"] == "answered"


def test_output_goes_to_a_file(tmp_path: Path, exchanges: list[dict[str, Any]]) -> None:
    for name, args in (("x.jsonl", ["--json"]), ("x.txt", [])):
        file = tmp_path / name
        code, out, _ = run("ls", DEMO, "-o", str(file), *args)
        assert (code, out) == (0, "")
        assert len(file.read_text().splitlines()) == len(exchanges) + (not args)


# --- how it ends --------------------------------------------------------------------------------


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, str]:
    data = Path(DEMO).read_bytes()
    (tmp_path / "empty.pcap").touch()
    (tmp_path / "text.pcap").write_text("hello")
    (tmp_path / "folder").mkdir()
    (tmp_path / "cut.pcap").write_bytes(data[: len(data) // 2 - 7])
    (tmp_path / "none.pcap").write_bytes(data[:24])
    names = ("missing.pcap", "empty.pcap", "text.pcap", "folder", "cut.pcap", "none.pcap")
    return {name.partition(".")[0]: str(tmp_path / name) for name in names}


@pytest.mark.parametrize("command", ["ls", "records"])
@pytest.mark.parametrize("name", ["missing", "empty", "text", "folder"])
def test_no_input_is_one_line_and_exit_code_3(
    inputs: dict[str, str], name: str, command: str
) -> None:
    code, out, err = run(command, inputs[name])
    assert (code, out) == (3, "")
    assert len(err.splitlines()) == 1
    assert Path(inputs[name]).name in err


def test_a_forbidden_input_is_exit_code_3(tmp_path: Path) -> None:
    file = tmp_path / "secret.pcap"
    file.write_bytes(Path(DEMO).read_bytes())
    file.chmod(0)
    drop = "import os; os.seteuid(65534) if os.getuid() == 0 else None; "
    tmp_path.chmod(0o755)
    code = drop + RUN[2]
    # Modules that the command needs are to be read before the rights are dropped.
    modules = "import kafkascope.tui.cli, kafkascope.analyzer.commands.ls, encodings.idna; "
    modules += "import kafkascope.analyzer.commands.failures; "
    modules += "import kafkascope.analyzer.logdir.opening; "
    done = subprocess.run(
        [sys.executable, "-c", modules + code, "ls", str(file)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert len(done.stderr.splitlines()) == 1
    assert "secret.pcap" in done.stderr


def test_a_key_log_that_is_not_there_is_exit_code_3(inputs: dict[str, str]) -> None:
    code, out, err = run("ls", inputs["none"], "--keylog", "no-such.keys")
    assert (code, out) == (3, "")
    assert "no-such.keys: no such file" in err


def test_a_cut_file_shows_what_is_whole_and_exit_code_4(inputs: dict[str, str]) -> None:
    code, out, err = run("ls", inputs["cut"], "--json")
    assert code == 4
    assert len(out.splitlines()) > 3
    assert "cut short" in err


def test_a_capture_without_packets_says_so(inputs: dict[str, str]) -> None:
    code, out, err = run("ls", inputs["none"])
    assert (code, out) == (0, "")
    assert "no packets" in err
    assert run("ls", inputs["none"], "-q") == (0, "", "")


def test_a_pipe_without_packets_had_no_requests(inputs: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kafkascope", "ls", "-"],
        input=Path(inputs["none"]).read_bytes(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"kafkascope: no requests were received\n"


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["-Y", "topik == 3"], 'unknown field "topik" at column 1'),
        (["-Y", "api == Fetsh"], "did you mean Fetch"),
        (["--keylog", "env"], "SSLKEYLOGFILE is not set"),
        (["-d", "9094"], "tcp.port==9094,kafka"),
        (["-d", "tcp.port==9094,http"], "only kafka"),
        (["-d", "tcp.port==99999,kafka"], "1 to 65535"),
        (["--from", "soon"], "2026-11-20T12:03Z"),
        (["--columns", "no,topik"], "did you mean topic"),
        (["--columns", "no,zzz"], 'unknown field "zzz" (list: kafkascope fields)'),
        (["--sort", "topik"], "did you mean topic"),
        (["-T", "fields"], "-e FIELD"),
        (["-T", "fields", "-e", "topik"], "did you mean topic"),
        (["-T", "fields", "-e", "topic", "-E", "x=y"], "separator"),
        (["-c", "0"], "-c"),
    ],
)
def test_wrong_usage_is_exit_code_2(args: list[str], word: str) -> None:
    code, out, err = run("ls", DEMO, *args)
    assert (code, out) == (2, "")
    assert word in err


def test_a_wrong_filter_is_told_before_the_input_is_looked_at() -> None:
    assert run("ls", "/no/such/file.pcap", "-Y", "topik")[0] == 2


@pytest.mark.parametrize("command", ["ls", "records"])
def test_a_reader_that_leaves_ends_it_quietly(command: str) -> None:
    process = subprocess.Popen(
        [*RUN, command, *([DEMO] * 6), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr:
        assert process.wait(60) == 141
        assert process.stderr.read() == b""


@pytest.mark.parametrize("command", ["ls", "records"])
def test_lines_appear_while_packets_arrive_and_ctrl_c_ends_with_130(command: str) -> None:
    process = subprocess.Popen(
        [*RUN, command, "-", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        bufsize=0,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    # So little that the answer fits into the pipe: nobody reads it yet.
    process.stdin.write(Path(DEMO).read_bytes()[:20_000])
    process.stdin.flush()
    # Stdin stays open: only a flush brings the line here.
    assert json.loads(process.stdout.readline())["schema"].endswith("/1")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"")
    assert all(json.loads(line) for line in out.splitlines())


# --- show, records, export ----------------------------------------------------------------------


def test_show_prints_trees_bytes_json_and_packets(exchanges: list[dict[str, Any]]) -> None:
    number = next(e["number"] for e in exchanges if e["api"] == "Produce" and e["records"])
    code, out, err = run("show", DEMO, str(number))
    assert (code, err) == (0, "")
    assert out.startswith(f"exchange {number}: Produce")
    assert "batch: magic" in out
    assert "crc" in out
    _, shown, _ = run("show", DEMO, str(number), "--hex")
    assert "request_api_key: 0" in shown
    assert "0-1         00 00" in shown
    (full,) = objects("show", DEMO, str(number), "--json")
    assert full["number"] == number
    assert full["request"]["topic_data"]
    _, packets, _ = run("show", DEMO, str(number), "--packets")
    assert "\n###[ TCP ]###\n" in packets


def test_show_takes_several_numbers_and_filters() -> None:
    assert [e["number"] for e in objects("show", DEMO, "1,3-4", "6", "--json")] == [1, 3, 4, 6]
    found = objects("show", DEMO, "-Y", "api == Metadata", "--json")
    assert {e["api"] for e in found} == {"Metadata"}


def test_show_says_which_exchange_is_not_there() -> None:
    code, out, err = run("show", DEMO, "100000")
    assert (code, out) == (2, "")
    assert "there is no exchange 100000; this capture has 1 to 175" in err
    assert run("show", DEMO)[0] == 2


def test_packets_of_a_compressed_capture_are_found(tmp_path: Path) -> None:
    packed = tmp_path / "demo.pcap.gz"
    packed.write_bytes(gzip.compress(Path(DEMO).read_bytes()))
    code, out, _ = run("show", str(packed), "2", "--packets")
    assert code == 0
    assert "###[ TCP ]###" in out


def test_no_output_holds_a_secret(tmp_path: Path) -> None:
    full = tmp_path / "full.jsonl"
    assert run("export", SASL, "-o", str(full), "--full")[0] == 0
    texts = [full.read_text()]
    for args in (["--hex"], [], ["--json"]):
        texts.append(run("show", SASL, "-Y", "number > 0", *args)[1])
    texts.append(run("ls", SASL, "-T", "fields", "-e", "request.auth_bytes")[1])
    assert "SaslAuthenticate" in texts[0]
    for text in texts:
        # PLAIN is NUL, user, NUL, password: as text, base64 or hexadecimal.
        assert "-secret" not in text
        assert "2d736563726574" not in text.replace(" ", "")


def test_records_are_lines_with_key_and_value() -> None:
    found = objects("records", DEMO, "--json")
    assert {each["schema"] for each in found} == {"record/1"}
    assert {each["source"] for each in found} == {"produce", "fetch"}
    code, out, _ = run("records", DEMO, "-n", "3", "--key", "--headers")
    header, *lines = out.splitlines()
    assert (code, len(lines)) == (0, 3)
    assert header.split("\t")[-2:] == ["Key", "Headers"]
    code, out, _ = run("records", DEMO, "-n", "2", "--format", "json")
    assert len(json.loads(out)) == 2
    code, out, _ = run("records", DEMO, "-Y", "number > 100000", "--format", "json")
    assert json.loads(out) == []
    assert run("records", DEMO, "--columns", "nothing")[0] == 2


def test_export_writes_files(tmp_path: Path, exchanges: list[dict[str, Any]]) -> None:
    plain, full, table = (str(tmp_path / name) for name in ("a.jsonl", "b.jsonl", "c.csv"))
    code, out, err = run("export", DEMO, "-o", plain)
    assert (code, out) == (0, "")
    assert f"{len(exchanges)} exchanges written" in err
    assert run("export", DEMO, "-o", plain, "-q")[2] == ""
    assert run("export", DEMO, "-o", full, "--full")[0] == 0
    assert run("export", DEMO, "-o", table, "--table", "records")[0] == 0
    lines = [json.loads(line) for line in Path(plain).read_text().splitlines()]
    assert [each["number"] for each in lines] == [each["number"] for each in exchanges]
    bodies = [json.loads(line) for line in Path(full).read_text().splitlines()]
    assert all("request" in each for each in bodies)
    rows = list(csv.DictReader(io.StringIO(Path(table).read_text())))
    assert len(rows) == len(objects("records", DEMO, "--json"))
    code, out, _ = run("export", DEMO, "-o", "-", "--format", "jsonl")
    assert len(out.splitlines()) == len(exchanges)


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ([], "-o FILE"),
        (["-o", "x.orc"], "jsonl, csv"),
        (["-o", "x.jsonl", "--sort", "number"], "No such option"),
    ],
)
def test_wrong_exports_are_exit_code_2(args: list[str], word: str) -> None:
    code, _, err = run("export", DEMO, *args)
    assert code == 2
    assert word in err


# --- terminals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 80, 100, 160])
def test_a_table_fits_its_terminal(width: int) -> None:
    lines = on_terminal(width, "ls", DEMO, "-n", "20", "--color", "never")
    hidden = "hidden" in lines[-1]
    assert len(lines) == 21 + hidden
    assert hidden == (width < 160)
    assert [line for line in lines if len(line) > width] == []
    assert "API" in lines[0]
    assert "Result" in lines[0]


def test_colour_only_where_it_is_wanted() -> None:
    assert "\x1b[1m" in "".join(on_terminal(80, "ls", DEMO, "-n", "1"))
    assert "\x1b[" not in "".join(on_terminal(80, "ls", DEMO, "-n", "1", NO_COLOR="1"))
    assert "\x1b[" not in "".join(on_terminal(80, "ls", DEMO, "-n", "1", TERM="dumb"))
    assert "\x1b[" in run("ls", DEMO, "-n", "1", "--color", "always")[1]


def test_plain_is_ascii() -> None:
    assert "".join(on_terminal(80, "ls", DEMO, "--plain", "--color", "never")).isascii()


def on_terminal(width: int, *args: str, **env: str) -> list[str]:
    """What a command prints on a terminal of that width."""
    import fcntl
    import pty
    import struct
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    with subprocess.Popen(
        [*RUN, *args], stdin=follower, stdout=follower, stderr=follower, cwd=ROOT, env=ENV | env
    ) as process:
        os.close(follower)
        out = b""
        while True:
            try:
                data = os.read(leader, 65536)
            except OSError:
                break
            if not data:
                break
            out += data
        os.close(leader)
        assert process.wait() == 0
    return out.decode().splitlines()
