"""Characters that a terminal may get, and how wide texts are there."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kafkascope.analyzer.text import (
    CHUNK,
    columns_taken,
    cut,
    cut_within,
    escaped,
    filled,
    inert,
    inert_json,
    json_safe,
    packed,
    padded,
    safe,
    spelled,
    wrapped,
)
from kafkascope.dissectors.codec.jsonform import dumps
from tests.hostile import hostile
from tests.kit.run import run
from tests.kit.samples import SAMPLES

HOSTILE = [
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    *"\u061c\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067"
    "\u2068\u2069\ufeff\ufff9\u00ad\U000e0001\U000e0041\udc80\ue000",
]


@pytest.mark.parametrize("char", HOSTILE, ids=ascii)
def test_what_steers_or_hides_reaches_no_terminal(char: str) -> None:
    text = f"a{char}日b"
    assert safe(text) == "a·日b"
    assert escaped(text).isprintable()
    assert escaped(text) == f"a{char!r}日b".replace("'", "")


SPELT = st.text(st.sampled_from("ab\\xuU02e\u202e\u2066\x1b\n\U000e0001é"), max_size=12)


@given(SPELT, SPELT)
def test_no_two_names_are_spelled_alike(one: str, other: str) -> None:
    assert (spelled(one) == spelled(other)) == (one == other)
    assert spelled(one).isprintable()
    assert spelled(spelled(one)) == spelled(one)


@pytest.mark.parametrize("name", ["orders", r"CORP\nancy", r"CORP\user", r"a\xyz", "日本"])
def test_names_of_people_are_spelled_as_they_are(name: str) -> None:
    assert spelled(name) == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a\u202eb", r"a\u202eb"),
        (r"a\u202eb", r"a\\u202eb"),
        ("\x1b]0;\n\\", r"\x1b]0;\x0a\\"),
        ("\U000e0001", r"\U000e0001"),
        ("\udcff", r"\udcff"),
    ],
)
def test_what_nobody_would_see_is_spelled_out(name: str, expected: str) -> None:
    assert spelled(name) == expected


@pytest.mark.parametrize("char", HOSTILE, ids=ascii)
def test_json_has_the_same_value_without_them(char: str) -> None:
    value = {f"k{char}": [f"日{char}", "é"]}
    line = json_safe(dumps(value))
    assert line.decode().isprintable()
    assert json.loads(line) == value
    assert json_safe(line) is line or json_safe(line) == line


def test_json_keeps_its_own_line_feeds_and_texts() -> None:
    lines = b'{"a": "\xe6\x97\xa5",\n "b": 1}\n'
    assert json_safe(lines) == lines


def test_json_of_many_megabytes_is_looked_through_in_pieces() -> None:
    # Characters of three bytes stand across the edges of pieces.
    value = "x" + "日\u202e" * (CHUNK // 4)
    assert json.loads(json_safe(dumps(value))) == value


def test_spellings_of_all_characters_there_are_take_no_memory() -> None:
    from kafkascope.analyzer.text import _ESCAPES, _HIDING, _JSON, REMEMBERED

    every = "".join(map(chr, range(sys.maxunicode + 1)))
    assert safe(every).isprintable()
    assert escaped(every).isprintable()
    json_safe(every.encode("utf-8", "replace"))
    assert max(map(len, (_ESCAPES, _HIDING, _JSON))) <= REMEMBERED


TEXTS = st.text(st.sampled_from("ab é日本語e\u0301ｱ🎉·"), max_size=40)


@given(TEXTS, st.integers(1, 30))
def test_a_cell_is_as_wide_as_its_column(text: str, width: int) -> None:
    assert cell_len(padded(text, width)) == width
    assert cell_len(padded(text, width, right=True)) == width
    assert cell_len(cut(text, width)) <= width
    assert cell_len(cut_within(text, width)) <= width
    assert columns_taken(filled(text, width)) >= width


def test_wide_characters_take_two_columns() -> None:
    assert padded("日本語", 5) == "日本…"
    assert padded("日本語", 4) == "日 …"
    assert padded("日", 4, right=True) == "  日"
    assert cut_within("orders-4711-topic", 10) == "orde…topic"
    assert columns_taken("e\u0301") == 1


def test_a_cell_of_signs_without_a_width_has_an_end() -> None:
    assert len(padded("e" + "\u0301" * 100_000, 10)) < 200


@given(st.lists(st.text("ab-日:", min_size=1, max_size=30), max_size=12), st.integers(1, 40))
def test_lines_are_broken_at_spaces_only(words: list[str], width: int) -> None:
    lines = wrapped(" ".join(words), width, indent=" ", hanging="   ")
    assert " ".join(lines).split() == words
    for line in lines:
        assert columns_taken(line) <= width or len(line.split()) == 1


@given(st.text("ab-日 ", max_size=60), st.integers(6, 40))
def test_words_that_may_break_fit(text: str, width: int) -> None:
    lines = wrapped(text, width, hanging="  ", breaks=True)
    assert all(columns_taken(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_words_may_hold_spaces() -> None:
    assert packed(["see:", '"a b c"', "d"], 8) == ["see:", '"a b c"', "d"]


# --- text of traffic that runners of CI jobs would obey -------------------------------------------


SAMPLE = SAMPLES / "transactions.pcap"


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture in which every text begins with one command, and ends with another."""
    target = tmp_path_factory.mktemp("job") / "evil.pcapng"
    return hostile(SAMPLE, target, "##[error]y", "::error::")


@pytest.mark.parametrize(
    "text", ["::error::x", "  ::stop-commands::x", "a\n\t::set-output", "a ##[group]", "##vso[task"]
)
def test_commands_of_runners_are_text(text: str) -> None:
    lines = inert(text).split("\n")
    assert not any(line.strip().startswith("::") for line in lines)
    assert "##[" not in inert(text)
    assert "##vso[" not in inert(text)
    assert inert(text).replace("\\", "") == text
    written = json.dumps({"a": text}).encode()
    assert b"##[" not in inert_json(written)
    assert json.loads(inert_json(written)) == {"a": text}


def test_usual_text_stays() -> None:
    for text in ("[::1]:9092", "a::b", "## heading", "#[x]"):
        assert inert(text) == text


@pytest.mark.parametrize(
    "arguments",
    [
        ["ls", "--columns", "client_id"],
        ["ls", "--json"],
        ["show", "-Y", "number > 0"],
        ["clients"],
        ["ls", "-T", "fields", "-e", "client"],
        ["records"],
        ["records", "-T", "fields", "-e", "value"],
        ["export", "--format", "csv", "-o", "-"],
        ["export", "--format", "jsonl", "-o", "-"],
        ["check", "--all"],
        ["check", "-Y", 'client == "nobody-by-this-name"'],
        ["check", "--format", "github"],
        ["check", "--format", "junit"],
    ],
)
def test_a_log_of_a_job_holds_no_commands_of_traffic(
    arguments: list[str], evil: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if arguments[0] != "check":
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
    name, *rest = arguments
    done = run(name, evil, *rest)
    assert done.exit_code in (0, 1), done.output
    own = "github" in arguments
    assert not [
        line
        for line in done.output.splitlines()
        if line.strip().startswith("::") and not (own and " title=kafkascope%3A " in line)
    ]
    assert "##[" not in done.output
    assert "error" in done.output or arguments[0] == "check"
