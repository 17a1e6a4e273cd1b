"""Filters where tables are made, and over tables that are there: what they choose is what they
choose of the captures."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest

from kafkascope.analyzer.exchanges.column import columns_of
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.filter.bind import IN_TABLES, IN_TASKS, bind, demand
from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.fields import FIELDS, Field
from kafkascope.analyzer.pipeline.follow import ClosedRule, catch_up
from kafkascope.analyzer.pipeline.store import Store
from kafkascope.analyzer.pipeline.stored import Stored
from kafkascope.analyzer.pipeline.tables.collect import TableOptions
from tests.analyzer.pipeline.kit import Apart, commands, exchanges, made, made_alike, tables
from tests.kit.captures import late_names
from tests.kit.counting import traffic
from tests.kit.run import objects, run
from tests.kit.samples import CAPTURES, SAMPLES
from tests.matrix import pairs

FILES = [
    SAMPLES / "rebalance.pcap",
    SAMPLES / "libraries.pcap",
    SAMPLES / "cluster.pcap.gz",
    CAPTURES / "midstream.pcap.gz",
    CAPTURES / "wrong-answers.pcap",
]
FILTERS = [
    "error",
    "api == Fetch and latency > 1ms",
    'topic contains "o"',
    '"java"',
    "request.bytes > 100 and not group",
    "body.group_id or client.port > 40000",
    "api == NoSuch or state == opaque",
]
OF_ROWS = commands("stats apis", "stats latency --by api,client", "stats errors", "stats rates")
EVERY = OF_ROWS + commands(
    *("stats topics", "stats sizes", "stats connections", "groups", "cluster", "producers"),
    *("groups --delivery", "check --fail-on never"),
)


def words_of(value: Any) -> str:
    """Return how the id of a test names a parameter."""
    return " ".join(value) if isinstance(value, tuple) else getattr(value, "name", value)


NUMBER: Final = re.compile(r'"(number|slowest|largest)":\d+,?')
"""Tables count exchanges by the time of the first byte."""


def lines_of(*words: str) -> list[str]:
    result = run(*words, "--json", "-q")
    assert result.exit_code in (0, 4), result.output
    return sorted(NUMBER.sub("", line) for line in result.stdout.splitlines())


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path, str], Path]:
    """Folders of tables of a capture, and of what a filter selects of it, each made once."""

    @cache
    def made_of(path: Path, text: str) -> Path:
        out = tmp_path_factory.mktemp("tables") / path.name
        options = ("-Y", text) if text else ()
        assert run("spark", str(path), "-o", str(out), "-q", *options).exit_code in (0, 4)
        return out

    return made_of


@pytest.fixture(scope="module")
def whole_of() -> Callable[[Path], dict[str, list[Any]]]:
    """All rows of a capture's tables, made once."""

    @cache
    def rows(path: Path) -> dict[str, list[Any]]:
        with TemporaryDirectory() as folder:
            return made([str(path)], Path(folder, "whole"))[0]

    return rows


@pytest.mark.parametrize(
    ("path", "text"), pairs(FILES, [each for each in FILTERS if "NoSuch" not in each]), ids=words_of
)
def test_tables_of_a_selection_are_that_selection(
    path: Path, text: str, whole_of: Callable[[Path], dict[str, list[Any]]], tmp_path: Path
) -> None:
    plain = made_alike([str(path)], tmp_path, size=1 << 16, export=False, filter=text)
    whole = whole_of(path)
    # Every row of the selection is a row of the whole, with the same number.
    for name in ("exchanges", "record_batches", "frames", "records"):
        assert {_anywhere(row) for row in plain[name]} <= {_anywhere(row) for row in whole[name]}
    wanted = {line["exchange_id"] for line in objects("ls", path, "-Y", text, "--json", "-q")}
    assert {row["exchange_id"] for row in exchanges(tmp_path / "plain")} == wanted
    (manifest,) = Store(tmp_path / "plain").manifests()
    assert manifest["rows"]["exchanges"] == len(wanted)


def _anywhere(row: str) -> str:
    """A row without the name of its batch."""
    return row.replace("'batch_id'", "")


@pytest.mark.parametrize(
    ("words", "text"), pairs(EVERY, ['topic contains "o"', "group or error"]), ids=words_of
)
def test_commands_say_of_tables_what_they_say_of_the_selection(
    words: tuple[str, ...], text: str, made_once: Callable[[Path, str], Path]
) -> None:
    for path in FILES[:3]:
        of_tables = lines_of(*words, str(made_once(path, text)))
        assert of_tables == lines_of(*words, str(path), "-Y", text)


@pytest.mark.parametrize("engine", [None, Apart(2)], ids=["plain", "apart"])
@pytest.mark.parametrize(("text", "count"), [("topic == orders", 2), ("not topic == orders", 1)])
def test_a_name_that_comes_late_is_waited_for(
    text: str, count: int, engine: Apart | None, tmp_path: Path
) -> None:
    path = late_names(tmp_path / "late.pcapng")
    found, _ = made([str(path)], tmp_path / "tables", engine, filter=text)
    assert len(found["exchanges"]) == count


@pytest.mark.parametrize(
    ("words", "text"),
    pairs(OF_ROWS, ['topic contains "o"', "latency > 2ms", "group or error"]),
    ids=words_of,
)
def test_filters_over_tables_choose_what_they_choose_of_captures(
    words: tuple[str, ...], text: str, made_once: Callable[[Path, str], Path]
) -> None:
    for path in FILES:
        of_tables = lines_of(*words, str(made_once(path, "")), "-Y", text)
        assert of_tables == lines_of(*words, str(path), "-Y", text)


@pytest.mark.parametrize("text", ['topic contains "o"', "latency > 2ms", "group or error"])
def test_exchanges_of_tables_that_a_filter_selects_are_those_of_captures(
    text: str, made_once: Callable[[Path, str], Path], tmp_path: Path
) -> None:
    for path in FILES:
        of_tables = lines_of("ls", str(made_once(path, "")), "-Y", text)
        assert of_tables == _saved(path, text, tmp_path)


def _saved(path: Path, text: str, folder: Path) -> list[str]:
    """As `ls` writes into a file: with names that came late."""
    out = folder / "saved.jsonl"
    run("ls", str(path), "-Y", text, "--json", "-q", "-o", str(out))
    return sorted(NUMBER.sub("", line) for line in out.read_text().splitlines())


def test_rows_of_tables_are_the_rows_that_were_stored(tmp_path: Path) -> None:
    for path in FILES:
        made([str(path)], tmp_path / path.name)
        expected = {exchange.id: row for row, exchange in traffic(path.name, path.parent)[0]}
        found = {row.id: row for row, _ in Stored(str(tmp_path / path.name)).rows()}
        assert found.keys() == expected.keys()
        for key, row in found.items():
            for each in columns_of(Row):
                if each.name in ("number", "connection"):
                    continue
                ours, theirs = getattr(row, each.name), getattr(expected[key], each.name)
                if each.name == "errors":
                    theirs = tuple(error._replace(topic_id=None) for error in theirs)
                assert ours == theirs, each.name


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_a_field_is_known_or_refused(field: Field) -> None:
    bound = bind(field.example)
    for known in (IN_TASKS, IN_TABLES):
        if field.name in known:
            continue
        with pytest.raises(FilterError) as refused:
            demand(bound, field.example, known, "{} is not known here", "")
        assert refused.value.at >= 0


def test_what_tables_do_not_have_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = str(FILES[0])
    for text in ("number < 4", "conn == 1", "time.delta > 1s", "marked", "finding"):
        result = run("spark", path, "-o", str(tmp_path / "t"), "-Y", text)
        assert result.exit_code == 2
        assert "not known yet while tables are made" in result.stderr
    out = str(tmp_path / "whole")
    assert run("spark", path, "-o", out, "-q").exit_code == 0
    for words in (("groups",), ("check",), ("stats", "topics"), ("groups", "--delivery")):
        result = run(*words, out, "-Y", "error")
        assert result.exit_code == 3
        assert "spark -Y" in result.stderr
    for text in ("record.key contains x", "response.throttle_time_ms > 1", "finding"):
        result = run("ls", out, "-Y", text)
        assert result.exit_code == 2, text
    assert run("ls", out, "--columns", "number,record.key").exit_code == 2
    assert run("ls", out, "--connects").exit_code == 2
    told = lines_of("clients", str(tmp_path / "whole"))
    assert all("-Y" not in line for line in told)
    chosen = str(tmp_path / "chosen")
    assert run("spark", path, "-o", chosen, "-q", "-Y", "group").exit_code == 0
    told = lines_of("clients", chosen)
    assert told
    assert all(
        "unknown: only exchanges that match -Y 'group' were counted" in line for line in told
    )


def test_batches_keep_their_numbers_with_a_filter(tmp_path: Path) -> None:
    """The ranks of a later batch go on behind all exchanges of the earlier, wanted or not."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number, path in enumerate((FILES[0], FILES[1])):
        (folder / f"{number}.pcap").write_bytes(path.read_bytes())
    text = "group or error"
    for name, options in (("whole", TableOptions()), ("chosen", TableOptions(filter=text))):
        list(
            catch_up([str(folder)], tmp_path / name, options, ClosedRule(0.0, True), batch_bytes=1)
        )
    chosen = exchanges(tmp_path / "chosen")
    whole = {row["exchange_id"]: row["number"] for row in exchanges(tmp_path / "whole")}
    assert 0 < len(chosen) < len(whole)
    assert all(whole[row["exchange_id"]] == row["number"] for row in chosen)
    assert tables(tmp_path / "chosen")["exchanges"]
