"""The tools of assistants with tables that dropped most of what was counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkascope.bridges.mcp.toolbox import Toolbox
from kafkascope.errors import Error
from kafkascope.library.capture import open as open_capture
from kafkascope.library.tables import TABLES
from tests.small_tables import FEW, small_tables  # noqa: F401  (a fixture)


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("path", FEW, ids=lambda path: path.name)
def test_tools_answer_with_what_small_tables_kept(path: Path) -> None:
    with open_capture([path]) as capture:
        box = Toolbox(capture)
        answers = [box.overview(), box.findings("chat"), box.exchanges("finding")]
        answers += [box.table(name) for name in TABLES]
        try:
            answers.append(box.exchange(1))
        except Error:
            assert '"exchanges":0' in answers[0]
    assert all("data" in json.loads(each) for each in answers)
