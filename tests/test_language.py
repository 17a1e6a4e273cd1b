"""Texts for users: the words of docs/glossary.md, findings as symptom and fix, help of one line,
headings of tables."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import pytest

from kafkascope.analyzer.findings import RULES, Findings
from kafkascope.analyzer.findings.causes import EXPLANATIONS
from kafkascope.analyzer.findings.rules import DATA, THRESHOLDS
from kafkascope.analyzer.statistics.accumulators import STATISTICS
from kafkascope.tui.boards import board_of
from kafkascope.tui.cli import main
from kafkascope.tui.controllers.table import KEYS as CONTROLLER_KEYS
from kafkascope.tui.keys import BOARD_KEYS, FOOTER, Key
from kafkascope.tui.screens import SCREENS, TABS
from tests.kit.samples import ROOT

FINDINGS: Final = (
    "analyzer/findings",
    "analyzer/statistics/thresholds.py",
    "analyzer/statistics/verdict.py",
    "analyzer/statistics/delivery/audit.py",
    "analyzer/statistics/delivery/follow.py",
    "analyzer/statistics/delivery/parts.py",
    "analyzer/statistics/groups/causes.py",
    "analyzer/statistics/groups/members.py",
    "analyzer/conversation/detect.py",
    "captures/tls/certificates.py",
    "dissectors/reference/help.py",
)
"""Modules whose sentences become findings, beside `rules.json`."""
SHOWN: Final = (
    "tui",
    "analyzer/report",
    "analyzer/reading",
    "analyzer/commands",
    "analyzer/conversation",
    "analyzer/exchanges",
    "analyzer/filter",
    "analyzer/logdir",
    "analyzer/pipeline",
    "analyzer/spark",
    "analyzer/statistics",
    "analyzer/transform",
    "analyzer/fixtures",
    "analyzer/render",
    "bindings/python",
    "bridges",
    "captures",
    "kernel",
    "library",
    "schemas",
    "proxy",
)
"""Rooms whose strings users read: screens, reports, reasons, and messages on stderr."""
RECORDED: Final = (" by hand",)
"""Parts of comments in recordings, which readers of older ones look for: a format, not a text."""
NAMING: Final = ("columns", "_kinds")
"""Functions of `statistics.model` whose arguments are lists of names."""
LINE: Final = 60
"""Characters of the first line of a command's help."""
VERBS: Final = re.compile(
    "Analyze|Answer|Browse|Capture|Check|Compare|Convert|Count|Create|Decode|Encode|Explain|"
    "Explore|Export|Extract|Find|Install|List|Make|Measure|Print|Record|Remove|Resend|Run|Serve|"
    "Set|Show|Use|Verify|Watch|Write"
)
"""First words of a command's help."""
FIXES: Final = re.compile(
    "Add|Capture|Check|Choose|Close|Commit|Compare|Configure|Connect|Copy|Create|Find|Give|Grant|"
    "Identify|If|Let|Look|Lower|Make|Move|Pass|Point|Poll|Raise|Recreate|Remove|Resolve|Restart|"
    "Run|Search|Set|Skip|Speed|Start|Synchronize|Test|Upgrade|Use|No action is needed"
)
"""First words of advice."""
NAMES: Final = frozenset(
    {"API", "APIs", "CONCURRENT_TRANSACTIONS", "HTTP", "SASL", "TCP", "TLS", "ZooKeeper"}
)
"""Words that begin with a capital inside sentences, too."""


class Text(NamedTuple):
    """A text of the product, and where it is."""

    place: str
    text: str


def replaced() -> list[str]:
    """Return the phrases that the glossary replaces: those in backticks of its column "not"."""
    rows = (line.split("|") for line in (ROOT / "docs/glossary.md").read_text("utf-8").split("\n"))
    return [phrase for row in rows if len(row) == 5 for phrase in re.findall(r"`([^`]+)`", row[3])]


PHRASES: Final = replaced()
FOREIGN: Final = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, PHRASES))})(?![\w-])", re.I)


def texts_in(path: Path) -> Iterator[Text]:
    """Yield the strings of a module that are words for people: no docstrings, names, filters."""
    tree = ast.parse(path.read_text("utf-8"))
    skipped = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in node.values)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in NAMING:
            skipped.update(map(id, node.args))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = (each.value if isinstance(each, ast.Constant) else "{}" for each in node.values)
            text = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if " " in text.strip() and "==" not in text:
            yield Text(f"{path.relative_to(ROOT)}:{node.lineno}", text)


def modules(places: tuple[str, ...]) -> list[Path]:
    paths = [ROOT / place for place in places]
    return [each for path in paths for each in (sorted(path.rglob("*.py")) or [path])]


def foreign(texts: Iterator[Text]) -> list[str]:
    """Return places, phrases and texts that do not speak the field's language."""
    return [
        f"{each.place}: {found[0]!r} in {each.text!r}"
        for each in texts
        if (found := FOREIGN.search(each.text))
    ]


def commands(
    command: click.Command = main, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Yield all commands, each with its name behind those of its groups."""
    yield " ".join(path) or "kafkascope", command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, (*path, name))


COMMANDS: Final = dict(commands())


def help_of(command: click.Command) -> Iterator[Text]:
    """Yield the help of a command and of its options."""
    yield Text("help", command.help or "")
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            yield Text(option.opts[-1], option.help or "")


def test_the_glossary_has_phrases_to_replace() -> None:
    assert len(PHRASES) > 50
    assert FOREIGN.search("it told a client")
    assert not FOREIGN.search("a toldo, retold")


def data(value: Any, place: str = "rules") -> Iterator[Text]:
    """Yield the texts of data, each with the keys that lead to it."""
    if isinstance(value, str):
        if " " in value:
            yield Text(place, value)
        return
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        yield from data(each, f"{place}/{key}")


def test_findings_use_the_words_of_the_field() -> None:
    assert not foreign(text for path in modules(FINDINGS) for text in texts_in(path))
    assert not foreign(data(DATA))


@pytest.mark.parametrize("room", SHOWN)
def test_texts_use_the_words_of_the_field(room: str) -> None:
    texts = (text for path in modules((room,)) for text in texts_in(path))
    assert not foreign(text for text in texts if not text.text.endswith(RECORDED))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_a_line_that_begins_with_a_verb(name: str) -> None:
    command = COMMANDS[name]
    first = " ".join((command.help or "").split("\n\n")[0].split())
    assert re.match(rf"(?:{VERBS.pattern})\b", first)
    assert len(first) <= LINE
    assert not foreign(help_of(command))
    assert [each.place for each in help_of(command) if "the same." in each.text.lower()] == []


def test_headings_have_one_capitalisation() -> None:
    kinds = (*STATISTICS.values(), Findings)
    titles = {column.title for kind in kinds for column in kind.COLUMNS}
    assert [
        each for each in titles if each[:1].islower() and not re.fullmatch(r"p\d\d", each)
    ] == []
    assert not {"N", "n", "#", ""} & titles


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_a_symptom_and_a_fix(name: str) -> None:
    rule = RULES[name]
    first = rule.title.split()[0]
    assert first[0].islower() or first in NAMES
    assert first not in ("a", "an", "the")
    assert not rule.title.endswith(".")
    for advice in (rule.advice, *rule.advices.values()):
        assert advice.endswith(".")
        assert re.match(rf"(?:{FIXES.pattern})\b", advice)


def test_reasons_are_one_short_phrase() -> None:
    reasons = [each.why for each in EXPLANATIONS] + [each.why for each in THRESHOLDS.values()]
    capital = [why for why in reasons if why[0].isupper()]
    assert [why for why in capital if why.split()[0].strip(":") not in NAMES] == []
    assert [why for why in reasons if why.endswith(".") or len(why) > 160] == []


KEYS: Final = {key.id: key for key in (*CONTROLLER_KEYS, *BOARD_KEYS)}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_is_explained_by_a_phrase_and_hinted_in_lower_case(key: Key) -> None:
    assert key.help[0].isupper()
    assert not key.help.endswith(".")
    for keys in FOOTER.values():
        hint = keys.get(key.id, "")
        assert hint.lower() == hint


def test_titles_and_tabs_of_screens_begin_with_a_capital() -> None:
    titles = [board_of(number).title for number in SCREENS]
    titles += [text for tab in TABS.values() for text in (tab.title, tab.short)]
    assert [title for title in titles if not title[0].isupper()] == []
