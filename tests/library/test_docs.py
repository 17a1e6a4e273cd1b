"""The examples of docs/library.md run."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import kafkascope as ks
from kafkascope.analyzer.statistics.model import Column
from kafkascope.analyzer.statistics.simple import PARTS
from kafkascope.library.tables import MAX_HTML_LINES, TABLES, Key, Table, TableName
from tests.kit.samples import ROOT, SAMPLES

TEXT = (ROOT / "docs" / "library.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with ks.Broker(SAMPLES / "libraries.pcap") as broker:
        yield broker.bootstrap


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_runs(
    example: str,
    bootstrap: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prod.pcapng").write_bytes((SAMPLES / "demo.pcap.zst").read_bytes())
    code = compile(example.replace("broker:9092", bootstrap), "docs/library.md", "exec")
    exec(code, {"__name__": "example"})  # the page is ours
    out, err = capsys.readouterr()
    assert err == ""
    assert out or "assert" in example or "to_arrow" in example


def test_the_page_has_every_name() -> None:
    text = TEXT.replace("`", " ")
    for name in ks.__all__:
        assert re.search(rf"(ks\.|\b){name}\b", text), name
    for name in TABLES:
        assert f"`{name}`" in TEXT, name
    tree = TEXT.partition("    Error\n")[2].partition("\nDamage")[0]
    for name in ks.__all__:
        found = getattr(ks, name)
        if isinstance(found, type) and issubclass(found, ks.Error) and found is not ks.Error:
            assert name in tree, name


# --- what type checkers know of the library, and tables in notebooks ------------------------------


WRONG = """
import kafkascope as ks

capture = ks.open("a.pcap")
capture.table("latency", by=("api", "client_id"))
capture.to_arrow("records")
capture.findings("warning")
capture.table("latncy")
capture.table("latency", by="moon")
capture.to_arrow("latncy")
capture.findings("grave")
"""


def test_names_of_tables_are_declared_for_type_checkers() -> None:
    assert get_args(TableName) == tuple(TABLES)
    columns = {column.name for part in PARTS.values() for column in part}
    assert set(get_args(Key)) == {*PARTS, *columns}


@pytest.mark.slow
def test_a_name_that_there_is_not_is_an_error_of_the_type_checker(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    script = tmp_path / "script.py"
    script.write_text(WRONG)
    said, trouble, _ = api.run(["--no-error-summary", "--follow-imports=silent", str(script)])
    lines = [line for line in said.splitlines() if ": error: " in line]
    assert [int(line.split(":")[1]) for line in lines] == [8, 9, 10, 11], said + trouble
    assert all("[arg-type]" in line for line in lines)


def test_a_table_in_a_notebook_is_escaped() -> None:
    columns = [Column("client_id"), Column("latency", "duration")]
    line = {"client_id": "<script>alert(1)</script>\x1b[2J", "latency": 1_500_000}
    html = Table("latency", columns, [line] * (MAX_HTML_LINES + 3))._repr_html_()
    assert "<th>Client</th><th>Latency</th>" in html
    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert "\x1b" not in html
    assert html.count("<tr>") == MAX_HTML_LINES + 1
    assert "3 more lines" in html
