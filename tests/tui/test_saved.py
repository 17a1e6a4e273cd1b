"""Filters with names: kept, spelled out, forgotten; a file that people edit."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.filter import bind
from analyzer.filter_errors import FilterError
from tests.tui.pilots import idle, run
from tui.saved import (
    names_at,
    read_saved,
    saved_path,
    spelled_out,
    wants_keeping,
    without_names,
    write_saved,
)
from tui.store import Store

SAVED = {"slow": "latency > 1s or wait", "a.b": "@slow and api == Fetch", "me": "@me"}


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("@slow", "(latency > 1s or wait)"),
        ("not @slow and number > 3", "not (latency > 1s or wait) and number > 3"),
        ("!(@slow)", "!((latency > 1s or wait))"),
        ("@a.b", "((latency > 1s or wait) and api == Fetch)"),
        ('client == "x @slow"', 'client == "x @slow"'),
        ("client == billing@slow", "client == billing@slow"),
    ],
)
def test_names_are_spelled_out_where_they_are_names(text: str, plain: str) -> None:
    assert spelled_out(text, SAVED) == plain
    bind(without_names(text))
    assert len(without_names(text)) == len(text)


def test_unknown_names_and_circles_are_errors_with_a_place() -> None:
    with pytest.raises(FilterError) as caught:
        spelled_out("api == Fetch and @slw", SAVED)
    assert (caught.value.at, caught.value.hint) == (17, "did you mean @slow?")
    with pytest.raises(FilterError, match="circles"):
        spelled_out("@me", SAVED)


def test_names_are_completed() -> None:
    found = names_at("not @s", 6, SAVED)
    assert found is not None
    assert (found.begin, [item.text for item in found.items]) == (4, ["@slow"])
    assert names_at("client == a@s", 13, SAVED) is None


def test_what_wants_keeping() -> None:
    assert wants_keeping("@slow = latency > 1s") == ("slow", "latency > 1s")
    assert wants_keeping("@slow =") == ("slow", "")
    assert wants_keeping("@slow == 3") is None
    assert wants_keeping("client == @slow") is None


def test_the_file_holds_every_text_and_tells_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "new" / "filters.toml"
    texts = {"q": 'client == "a\\"b\\\\"', "u-1": "topic == ü\U0001f600\x7f\t", "d.t": "wait"}
    write_saved(texts, path)
    assert read_saved(path) == (texts, "")
    path.write_text("slow = 3\nok = 'wait'\n", encoding="utf-8")
    assert read_saved(path) == ({"ok": "wait"}, f"{path}: no names with a filter in quotes: slow")
    path.write_text("slow", encoding="utf-8")
    assert "no saved filters" in read_saved(path)[1]


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
        assert app.box.value == "@p"
        produced = len(app.view_)
        assert 0 < produced < len(store)
        app.put("@p and number > 9")
        await pilot.press("slash", "enter")
        await idle(app, pilot)
        assert app.filter_error == ""
        assert app.view_.text == "(api == Produce) and number > 9"
        await pilot.press("slash")
        app.put("@q = nonsense == 3")
        await pilot.press("enter")
        assert "@q: unknown field" in app.filter_error
        app.put("@p =")  # the box still has the focus: nothing was kept
        await pilot.press("enter")
        await idle(app, pilot)
        assert read_saved() == ({}, "")
        assert len(app.view_) == len(store)

    run(store, steps)
