"""Filters with names in the filter box: kept, used, forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkascope.analyzer.filter.saved import read_saved, saved_path
from kafkascope.tui.data.store import Store
from tests.tui.pilots import idle, run


def test_a_filter_is_kept_used_and_forgotten(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    async def steps(app, pilot):
        await pilot.press("slash", *"@p = api == Produce", "enter")
        await idle(app, pilot)
        assert read_saved() == ({"p": "api == Produce"}, "")
        assert saved_path().parent == tmp_path / "kafkascope"
        assert app.filter.box.value == "@p"
        produced = len(app.workspace.view)
        assert 0 < produced < len(store)
        app.filter.put("@p and number > 9")
        await pilot.press("slash", "enter")
        await idle(app, pilot)
        assert app.filter.error == ""
        assert app.workspace.view.text == "(api == Produce) and number > 9"
        await pilot.press("slash")
        app.filter.put("@q = nonsense == 3")
        await pilot.press("enter")
        assert "@q: unknown field" in app.filter.error
        app.filter.put("@p =")  # the box still has the focus: nothing was kept
        await pilot.press("enter")
        await idle(app, pilot)
        assert read_saved() == ({}, "")
        assert len(app.workspace.view) == len(store)

    run(store, steps)
