"""Filters with names: kept, spelled out, forgotten; a file that people edit."""

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.language import bind
from kafkascope.analyzer.filter.saved import (
    names_at,
    read_saved,
    spelled,
    spelled_out,
    wants_keeping,
    without_names,
    write_saved,
)
from kafkascope.proxy.rules.faults import FaultError, parse_fault
from kafkascope.tui.cli import main
from tests.kit.samples import SAMPLES

SAVED = {"slow": "latency > 1s or wait", "a.b": "@slow and api == Fetch", "me": "@me"}


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("@slow", "(latency > 1s or wait)"),
        ("not @slow and number > 3", "not (latency > 1s or wait) and number > 3"),
        ("!(@slow)", "!((latency > 1s or wait))"),
        ("@a.b", "((latency > 1s or wait) and api == Fetch)"),
        ('client == "x @slow"', 'client == "x @slow"'),
        ("client == billing@slow", "client == billing@slow"),
        ("client == @slow", "client == @slow"),
        ("client in {@slow, @me} or topic contains @slow", None),
        ("wait||@slow", "wait||(latency > 1s or wait)"),
    ],
)
def test_names_are_spelled_out_where_they_are_names(text: str, plain: str | None) -> None:
    assert spelled_out(text, SAVED) == (plain or text)
    bind(without_names(text))
    assert len(without_names(text)) == len(text)


def test_unknown_names_and_circles_are_errors_with_a_place() -> None:
    with pytest.raises(FilterError) as caught:
        spelled_out("api == Fetch and @slw", SAVED)
    assert (caught.value.at, caught.value.hint) == (17, "did you mean @slow?")
    with pytest.raises(FilterError, match="refers to itself"):
        spelled_out("@me", SAVED)


def test_names_are_completed() -> None:
    found = names_at("not @s", 6, SAVED)
    assert (found.begin, [item.text for item in found.items]) == (4, ["@slow"])
    assert names_at("client == a@s", 13, SAVED) is None


def test_what_wants_keeping() -> None:
    assert wants_keeping("@slow = latency > 1s") == ("slow", "latency > 1s")
    assert wants_keeping("@slow =") == ("slow", "")
    assert wants_keeping("@slow == 3") is None
    assert wants_keeping("client == @slow") is None


def test_the_file_holds_every_text_and_tells_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "new" / "filters.toml"
    texts = {"q": 'client == "a\\"b\\\\"', "u-1": "topic == ü\U0001f600\x7f\t", "d.t": "wait"}
    write_saved(texts, path)
    assert read_saved(path) == (texts, "")
    path.write_text("slow = 3\nok = 'wait'\n", encoding="utf-8")
    assert read_saved(path) == ({"ok": "wait"}, f"{path}: not NAME = 'FILTER': slow")
    path.write_text("slow", encoding="utf-8")
    assert "no saved filters" in read_saved(path)[1]


def test_names_that_grow_without_end_are_refused() -> None:
    saved = {f"a{n}": f"@a{n - 1} or @a{n - 1} or " * 9 + "wait" for n in range(1, 7)}
    with pytest.raises(FilterError, match="more than 20000 characters"):
        spelled_out("@a6", saved | {"a0": "wait"})


SAMPLE = str(SAMPLES / "libraries.pcap")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for settings, with two filters."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "kafkascope" / "filters.toml"
    write_saved({"p": "api == Produce", "late": "@p and latency > 1ms"}, path)
    return path


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, list(arguments))
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize(
    "command", [("ls",), ("stats", "apis"), ("check",), ("groups",), ("clients",), ("records",)]
)
def test_commands_know_the_names(kept: Path, command: tuple[str, ...]) -> None:
    named = run(*command, SAMPLE, "-Y", "@late and number > 9", "--json")
    spelt = "((api == Produce) and latency > 1ms) and number > 9"
    assert named[:2] == run(*command, SAMPLE, "-Y", spelt, "--json")[:2]
    assert named[0] in (0, 1)


@pytest.mark.parametrize("command", [("ls",), ("open",), ("cut", "-o", "x.pcap"), ("report",)])
def test_a_name_that_nobody_kept_is_refused_before_anything_is_read(
    kept: Path, command: tuple[str, ...]
) -> None:
    code, _, said = run(*command, "no-such-file.pcap", "-Y", "number > 3 and @lat")
    assert code == 2
    assert 'no saved filter "@lat" at column 16' in said
    assert "did you mean @late?" in said


def test_a_broken_file_is_named_where_a_name_is_asked_for(kept: Path) -> None:
    kept.write_text("late = [", encoding="utf-8")
    with pytest.raises(FilterError) as caught:
        spelled("@late")
    assert str(kept) in caught.value.hint
    assert spelled("wait") == "wait"


def test_rules_of_the_proxy_know_the_names_and_keep_them(kept: Path) -> None:
    fault = parse_fault("@late or @p -> delay 10ms on response")
    assert fault.matcher.bound == bind("((api == Produce) and latency > 1ms) or (api == Produce)")
    assert str(parse_fault(str(fault))) == str(fault)
    assert "@late or @p" in str(fault)
    with pytest.raises(FaultError, match="no saved filter"):
        parse_fault("@nobody -> drop")


def test_hold_and_print_refuse_unknown_names(kept: Path) -> None:
    for option in ("--hold", "-Y"):
        code, _, said = run("proxy", "--upstream", "127.0.0.1:1", option, "@nobody")
        assert code == 2
        assert 'no saved filter "@nobody"' in said


def test_shells_complete_names(kept: Path) -> None:
    shell = ShellComplete(main, {}, "kafkascope", "_KAFKASCOPE_COMPLETE")
    values = [item.value for item in shell.get_completions(["ls", "-Y"], "not @")]
    assert values == ["not @late", "not @p"]
