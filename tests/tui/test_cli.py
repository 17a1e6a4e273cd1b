"""The `kafkascope` command as users run it: a process, its streams, its exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafkascope.analyzer.commands.help import Option
from kafkascope.tui.cli import COMMANDS, to_look_at
from kafkascope.tui.open import open_, tab_words
from tests.kit.run import run as run_here
from tests.kit.samples import ROOT, SAMPLES

DEMO = SAMPLES / "libraries.pcap"
RUN = [sys.executable, "-c", "from kafkascope.tui.cli import main; main(prog_name='kafkascope')"]


def run(*args: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a command."""
    done = subprocess.run(
        [*RUN, *args], input=stdin, capture_output=True, cwd=ROOT, env={**os.environ, **(env or {})}
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def modules_of(*args: str) -> set[str]:
    """The modules that a command has loaded when it ends."""
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('\\n'.join(sys.modules), file=sys.stderr))\n"
        "from kafkascope.tui.cli import main\n"
        f"main({list(args)!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    return set(done.stderr.split())


@pytest.mark.parametrize("args", [["--help"], ["--version"]])
def test_help_and_version_load_nothing_heavy(args: list[str]) -> None:
    loaded = modules_of(*args)
    assert "kafkascope.tui.cli" in loaded
    heavy = {"numpy", "construct", "scapy", "textual", "mitmproxy", "pyspark", "rich", "orjson"}
    assert loaded.isdisjoint(heavy)
    assert not [
        name
        for name in loaded
        if name.startswith(("kafkascope.dissectors", "kafkascope.captures", "kafkascope.analyzer"))
    ]


def test_fields_loads_no_message() -> None:
    loaded = modules_of("fields")
    assert loaded.isdisjoint({"numpy", "construct", "scapy", "textual"})
    assert not [name for name in loaded if name.startswith("kafkascope.dissectors.messages.")]


def test_what_a_small_capture_does_not_need_is_not_loaded() -> None:
    for command in ("ls", "check"):
        loaded = modules_of(command, "captures/samples/libraries.pcap")
        assert loaded.isdisjoint({"numpy", "scapy", "textual", "pyarrow"})
        assert "kafkascope.analyzer.requestlog.parsing" not in loaded


def test_help_takes_no_more_than_the_limit() -> None:
    def spent(*command: str) -> float:
        """CPU time, because usually something else runs, too: the least of three."""
        found = []
        for _ in range(3):
            before = os.times()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
            after = os.times()
            found.append(after.children_user - before.children_user)
            found[-1] += after.children_system - before.children_system
        return min(found)

    # 0.07 s where Python alone takes 0.015 s: machines differ, their share does not.
    assert spent(*RUN, "--help") < 40 * max(spent(sys.executable, "-c", "pass"), 0.01)


def test_every_command_has_help_that_begins_as_the_list_says() -> None:
    _, listing, _ = run("--help")
    for name in COMMANDS:
        code, out, err = run(name, "--help")
        assert (code, err) == (0, "")
        assert out.startswith(f"Usage: kafkascope {name}")
        assert f"  {name}" in listing


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["lss"], 'did you mean "ls"'),
        (["ls", "--colour"], "--colour"),
        (["grammar", "Fetsh"], "did you mean Fetch"),
        (["grammar", "Fetch", "99"], "versions 0-18"),
        (["grammar", "Fetch", "new"], "a number or all"),
        (["decode"], "NAME and VERSION"),
        (["decode", "Fetch", "12", "00"], "--request or --response"),
        (["decode", "Fetch", "12", "--request", "zzz!"], "in none of the forms"),
        (["encode", "Fetch", "12", "--request", "{"], "JSON cannot be read"),
        (["encode", "Fetch", "12", "--request", '{"x": 1}'], "field"),
        (["error", "NOT_LEDER"], "did you mean"),
        (["completion", "tcsh"], "tcsh"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_a_sentence(args: list[str], word: str) -> None:
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert word in err
    assert "Traceback" not in err


@pytest.mark.parametrize("args", [["grammar", "all"], ["error"], ["decode", "--batch"]])
def test_a_closed_pipe_ends_quietly(args: list[str], tmp_path: Path) -> None:
    questions = tmp_path / "questions"
    questions.write_bytes(
        b'{"message":"HeartbeatRequest","version":0,"hex":"0000000000000000"}\n' * 5000
    )
    with questions.open() as stdin:
        process = subprocess.Popen(
            [*RUN, *args], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
        )
    process.stdout.close()
    with process.stderr:
        assert process.wait(60) == 141
        assert process.stderr.read() == b""


@pytest.mark.parametrize("words", [["-i", "lo"], ["-ilo"], ["-f", "port 9092", "-i", "lo"]])
def test_an_interface_is_captured_in_the_terminal_ui(words: list[str]) -> None:
    assert to_look_at(words)
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "the terminal UI needs a terminal; use `kafkascope capture`" in " ".join(err.split())


def test_options_of_the_terminal_ui_open_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its shared options a file is opened, with those of printing commands it is listed."""
    monkeypatch.setenv("TERM", "xterm")
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    shared = [each for each in open_.params if isinstance(each, Option) and each.shared]
    assert len(shared) > 10
    for name in (name for each in shared for name in each.opts):
        assert to_look_at(["my.pcap", name, "x"]), name
    assert not to_look_at(["my.pcap", "-o", "x"])


def test_a_key_log_that_is_not_there_is_told_before_the_screen_is_taken() -> None:
    done = run_here("open", DEMO, "--keylog", "no-such.keys", codes=(3,))
    assert done.output == "kafkascope: no-such.keys: no such file or folder\n"


def test_every_tab_gets_the_options_that_all_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.avsc").write_text('"string"')
    words = ["-Y", "api == Fetch", "-d", "tcp.port==9093,kafka", "--keylog", "a.keys"]
    words += ["--keylog", "env", "-t", "u", "--legs", "both", "--plain"]
    Path("a").mkdir()
    Path("b").mkdir()
    words += ["--schemas", "a", "--schemas", "b", "--schema", "t:key=x.avsc", "--no-schemas"]
    words += ["--registry", "http://localhost:8081", "--registry-ca", "ca.pem"]
    given = open_.make_context("open", [*words, "x.pcap"]).params
    again = open_.make_context("open", tab_words(given)[1:]).params
    assert {**again, "tab": False} == given


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("x.pcap",), "INPUT"),
        (("-i", "lo", "-f", "port 9092"), "-i, -f"),
        (("--keylog", "x.keys"), "--keylog"),
    ],
)
def test_options_of_captures_are_refused_with_attach(words: tuple[str, ...], wrong: str) -> None:
    assert f"leave out {wrong}" in run_here("open", *words, "--attach", "", codes=(2,)).output


def test_lines_are_refused_where_the_screen_is_opened() -> None:
    words = ("proxy", "--upstream", "b:9092", "--open", "--json")
    assert "--json" in run_here(*words, codes=(2,)).output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    code, out, _ = run("completion", shell)
    assert code == 0
    assert "_KAFKASCOPE_COMPLETE" in out


def test_completion_offers_commands() -> None:
    env = {
        "_KAFKASCOPE_COMPLETE": "bash_complete",
        "COMP_WORDS": "kafkascope gr",
        "COMP_CWORD": "1",
    }
    code, out, _ = run(env=env)
    assert code == 0
    assert "plain,grammar" in out


# --- decode and encode --------------------------------------------------------------------------

HEARTBEAT = {"group_id": "g", "generation_id": 7, "member_id": "m"}
BODY = "0001670000000700016d"


def test_encode_and_decode_are_inverse(tmp_path: Path) -> None:
    code, out, _ = run("encode", "Heartbeat", "0", "--request", json.dumps(HEARTBEAT))
    assert (code, out) == (0, BODY + "\n")
    file = tmp_path / "dump.txt"
    file.write_text(out)
    for more, stdin in (([BODY], b""), ([str(file)], b""), ([], out.encode())):
        said = run("decode", "HeartbeatRequest", "0", *more, stdin=stdin)
        assert said[:2] == (0, compact(HEARTBEAT))


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


def test_a_frame_a_header_and_body_and_a_body_are_told_apart() -> None:
    code, frame, _ = run(
        *("encode", "Heartbeat", "0", "--request", "--frame", "99", "--client-id", "me!"),
        json.dumps(HEARTBEAT),
    )
    assert code == 0
    for form in (frame.strip(), frame.strip()[8:]):
        code, out, err = run("decode", "Heartbeat", "0", "--request", form)
        assert (code, out) == (0, compact(HEARTBEAT))
        assert "correlation_id 99" in err
    _, out, _ = run("decode", "Heartbeat", "0", "--request", "--frame", frame.strip())
    assert json.loads(out)["header"]["client_id"] == "me!"
    code, again, _ = run("encode", "Heartbeat", "0", "--request", out.strip())
    assert again == frame


def test_left_over_bytes_are_said_and_exit_code_4() -> None:
    code, out, err = run("decode", "HeartbeatRequest", "0", BODY + "ffff")
    assert (code, out) == (4, compact(HEARTBEAT))
    assert "2 bytes left over from byte 10" in err


def test_bytes_that_are_no_message_are_refused_with_the_place() -> None:
    code, out, err = run("decode", "HeartbeatRequest", "0", "0001")
    assert (code, out) == (2, "")
    assert "group_id" in err or "bytes" in err


def test_the_tree_has_the_bytes_of_each_field() -> None:
    code, out, _ = run("decode", "HeartbeatRequest", "0", BODY, "--hex")
    assert code == 0
    assert "3-6         00 00 00 07" in out
    assert "generation_id: 7" in out


def test_raw_bytes_come_and_go(tmp_path: Path) -> None:
    done = subprocess.run(
        [*RUN, "encode", "HeartbeatRequest", "0", "--raw", json.dumps(HEARTBEAT)],
        capture_output=True,
        cwd=ROOT,
    )
    assert done.stdout == bytes.fromhex(BODY)
    file = tmp_path / "body.bin"
    file.write_bytes(b"\xff" + done.stdout)
    assert run("decode", "HeartbeatRequest", "0", str(file))[0] in (2, 4)


def test_a_negative_error_code_is_no_option() -> None:
    code, out, _ = run("error", "-1")
    assert (code, out.split()[0]) == (0, "UNKNOWN_SERVER_ERROR")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_are_no_trouble(closed: str, tmp_path: Path) -> None:
    made = tmp_path / "out.pcap"
    for arguments in (["ls", str(DEMO), "-n", "1"], ["cut", str(DEMO), "-o", str(made)]):
        script = f'exec "$@" {closed}'
        command = ["sh", "-c", script, "sh", *RUN, *arguments]
        done = subprocess.run(command, capture_output=True, cwd=ROOT)
        assert done.returncode == 0
        assert b"Traceback" not in done.stderr
        assert bool(done.stdout) == (">&-" not in closed.split() and arguments[0] == "ls")
    # Nothing of what was printed went into the file.
    whole = tmp_path / "whole.pcap"
    assert run("cut", str(DEMO), "-o", str(whole))[0] == 0
    assert made.read_bytes() == whole.read_bytes()
