"""Filters with names in the filter box: kept, used, forgotten."""

from __future__ import annotations

from kafkascope.analyzer.filter.saved import read_saved, saved_path


async def test_a_filter_is_kept_used_and_forgotten(home, app, pilot, store) -> None:
    await pilot.do("slash", *"@p = api == Produce", "enter")
    assert read_saved() == ({"p": "api == Produce"}, "")
    assert saved_path().parent == home / "kafkascope"
    assert app.filter.box.value == "@p"
    assert 0 < len(app.workspace.view) < len(store)
    app.filter.put("@p and number > 9")
    await pilot.do("slash", "enter")
    assert app.filter.error == ""
    assert app.workspace.view.text == "(api == Produce) and number > 9"
    await pilot.press("slash")
    app.filter.put("@q = nonsense == 3")
    await pilot.press("enter")
    assert "@q: unknown field" in app.filter.error
    app.filter.put("@p =")  # the box still has the focus: nothing was kept
    await pilot.do("enter")
    assert read_saved() == ({}, "")
    assert len(app.workspace.view) == len(store)
