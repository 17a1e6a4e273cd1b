"""The help of every command: sections, verbs, widths, and a text for each option."""

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from kafkascope.analyzer.commands.help import SHARED, Option, has_shared
from kafkascope.tui.cli import COMMANDS, INTEGRATIONS, SECTIONS, main

WIDTH = 80
LONGEST_LINE = 60
VERBS = frozenset(
    (
        *("Analyze", "Answer", "Browse", "Check", "Compare", "Convert", "Count", "Decode"),
        *("Encode", "Explain", "Explore", "Extract", "Find", "Follow", "Install", "List", "Make"),
        *("Map", "Measure"),
        *("Print", "Record", "Remove", "Resend", "Run", "Serve", "Set", "Show", "Verify"),
        *("Watch", "Write"),
    )
)
"""What a line of help begins with."""
OLD = ("keys", "delivery", "faults", "mcp", "wireshark", "mitmproxy")
"""Names that commands had before they were sorted."""


def commands(
    command: click.Command = main, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands below one, also hidden ones, with their words."""
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            yield (*words, name), below
            yield from commands(below, (*words, name))


EVERY = dict(commands())


def run(*words: str) -> str:
    """What a command prints on a terminal of 80 columns."""
    done = CliRunner(env={"COLUMNS": str(WIDTH)}).invoke(
        main, words, terminal_width=WIDTH, prog_name="kafkascope"
    )
    assert done.exit_code == 0, done.output
    return done.output


def test_every_command_is_in_one_section_of_the_list() -> None:
    helps = {name: text for texts in SECTIONS.values() for name, text in texts.items()}
    assert len(helps) == sum(map(len, SECTIONS.values())) == len(COMMANDS)
    listed = re.findall(r"^  (\S+) +(\S.*)$", run("--help"), re.MULTILINE)
    assert [each for each in listed if each[0] in COMMANDS] == list(helps.items())
    assert list(SECTIONS) == ["Look", "Ask", "Live", "Share", "Test", "Protocol", "Set up"]
    assert not {*OLD} & COMMANDS
    assert CliRunner().invoke(main, ["faults"]).exit_code == 2


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help_of_a_command_begins_with_a_verb_and_fits(words: tuple[str, ...]) -> None:
    command = EVERY[words]
    line = command.get_short_help_str(200)
    assert line.split()[0].rstrip(",") in VERBS, line
    assert len(line) <= LONGEST_LINE, line
    if command.context_settings.get("help_option_names") == []:
        return
    text = run(*words, "--help")
    above = EVERY.get(words[:-1])
    # The default command of a group has the words of the group.
    typed = words[:-1] if getattr(above, "default", "") == words[-1] else words
    assert text.startswith(f"Usage: kafkascope {' '.join(typed)} [OPTIONS]")
    for shown in (text, run(*words, "--help-all") if "--help-all" in text else ""):
        assert [each for each in shown.splitlines() if len(each) > WIDTH] == []


@pytest.mark.parametrize(
    "helps", [*SECTIONS.values(), *INTEGRATIONS.values()], ids=lambda helps: "-".join(helps)[:30]
)
def test_a_line_of_the_list_is_how_the_help_begins(helps: dict[str, str]) -> None:
    for name, text in helps.items():
        words = (name,) if name in COMMANDS else ("integrations", name)
        assert EVERY[words].get_short_help_str(200).removesuffix(".") == text


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_option_has_a_text(words: tuple[str, ...]) -> None:
    for option in EVERY[words].params:
        if isinstance(option, click.Argument):
            continue
        assert isinstance(option, Option), option.opts
        assert option.help, option.opts
        assert option.help[0].isupper() or option.help.startswith(values(option)), option.help
        assert not option.help.endswith("."), option.help


def values(option: Option) -> tuple[str, ...]:
    """The values of an option, which a text may begin with."""
    return tuple(f"{each}{mark}" for each in getattr(option.type, "choices", ()) for mark in ":,")


def test_own_options_come_first_and_shared_ones_on_request() -> None:
    short, full = run("ls", "--help"), run("ls", "--help-all")
    own, _, shared = short.partition(SHARED)
    assert "--connects" in own
    assert "--registry" not in own
    assert "--registry URL" in shared
    assert "-Y FILTER" in shared
    assert SHARED not in full
    for option in EVERY["ls",].params:
        if isinstance(option, Option) and not option.hidden:
            assert all(name in full for name in option.opts)
    titles = re.findall(r"^(\S.*):$", full, re.MULTILINE)
    assert titles == ["Options", "Filter", "Time", "Input", "TLS", "Schemas", "Output", "Messages"]


def test_the_proxy_has_sections() -> None:
    titles = re.findall(r"^(\S.*):$", run("proxy", "--help"), re.MULTILINE)
    assert titles[:5] == ["Network", "Rules", "Recording", "TLS", "Control"]


def test_a_group_with_a_usual_command_shows_its_options() -> None:
    text = run("fixture", "--help")
    assert "Usage: kafkascope fixture [OPTIONS] INPUT..." in text
    for part in ("--redact LEVEL", "--per-version N", "  check ", "  new ", SHARED):
        assert part in text
    assert has_shared(EVERY["fixture", "from"])
    assert "--registry URL" in run("fixture", "--help-all")


def test_four_tables_are_commands_of_the_same_declaration() -> None:
    for name in ("topics", "latency", "errors", "connections"):
        assert EVERY[name,] is EVERY["stats", name]
