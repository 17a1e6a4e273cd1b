"""What type checkers know of the library, and tables in notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from kafkascope.analyzer.statistics.model import Column
from kafkascope.analyzer.statistics.simple import PARTS
from kafkascope.library.tables import MAX_HTML_LINES, TABLES, Key, Table, TableName

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
