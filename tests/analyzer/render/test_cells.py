"""CSV of hostile traffic: no cell is a formula, numbers stay numbers."""

import csv
import io
from pathlib import Path

import pytest

from kafkascope.analyzer.export import ExportOptions, open_writer
from kafkascope.analyzer.render.cells import csv_line
from kafkascope.analyzer.topics import TopicNames, short_id
from tests.hostile import hostile
from tests.kit.run import run
from tests.kit.samples import SAMPLES

SIGNS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def cells(*values: object, raw: bool = False) -> list[str]:
    (found,) = csv.reader(io.StringIO(csv_line(values, raw=raw)))
    return found


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "＝", "＋", "－", "＠", " =", "\u3000="])
def test_text_that_begins_as_a_formula_is_text(sign: str) -> None:
    (cell,) = cells(f"{sign}HYPERLINK(1)")
    assert cell[0] == "'"
    assert cells(f"{sign}x", raw=True)[0][0] != "'"


def test_numbers_stay_numbers() -> None:
    given = ["-1", "+2", "-0.5", "-1.5e-7", -3, -0.25, "7", ".5"]
    assert cells(*given) == [str(each) for each in given]


def test_expressions_are_no_numbers() -> None:
    assert cells("-1+1", "+1|x", "-", "-1e", "-٣") == ["'-1+1", "'+1|x", "'-", "'-1e", "'-٣"]


def test_what_does_not_print_is_an_escape_on_one_line() -> None:
    line = csv_line(["a\nb\tc\\d\x9b\u202e", "日本 é"])
    assert line == r"a\nb\tc\\d\x9b\u202e,日本 é" + "\n"
    assert cells("\t=1", "\r=1") == [r"\t=1", r"\r=1"]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Every name and value of a real capture as a formula."""
    target = tmp_path_factory.mktemp("formulas") / "formulas.pcapng"
    return str(hostile(SAMPLES / "transactions.pcap", target, "|' /C calc'!A0", "=cmd-"))


@pytest.mark.parametrize(
    "words",
    [
        ("ls",),
        ("ls", "--columns", "client,topic,group,number"),
        ("records",),
        ("stats", "topics"),
        ("groups",),
        ("clients",),
        ("producers",),
        ("export", "-o", "-"),
        ("export", "-o", "-", "--table", "records"),
    ],
    ids=" ".join,
)
def test_no_command_writes_formulas(capture: str, words: tuple[str, ...]) -> None:
    name = 2 if words[0] == "stats" else 1
    words = (*words[:name], capture, *words[name:], "--format", "csv")
    for raw in (False, True):
        done = run(*[*words, "--raw"] if raw else words)
        assert done.exit_code == 0, done.output
        rows = list(csv.reader(io.StringIO(done.stdout)))
        found = [cell for row in rows for cell in row if cell.startswith(SIGNS)]
        formulas = [cell for cell in found if not cell.lstrip("-").replace(".", "").isdigit()]
        assert bool(formulas) == raw, formulas[:3]
        assert any("'=cmd-" in cell for row in rows for cell in row) != raw
        if not raw and "export" in words and len(words) == 6:
            assert "-1" in found  # producer ids and epochs


def test_a_topic_that_gets_its_name_late_is_no_formula(tmp_path: Path) -> None:
    topic_id = b"\xfb" * 16
    names = TopicNames()
    assert short_id(topic_id).startswith("-")
    for raw in (False, True):
        with (tmp_path / "x.csv").open("w+b") as file:
            writer = open_writer("csv", file, names, ExportOptions("records", raw=raw))
            cell = writer._cell_renamed(f"'{short_id(topic_id)}", {short_id(topic_id): "=1+1"})  # type: ignore[attr-defined]
        assert cell == ("=1+1" if raw else "'=1+1")
