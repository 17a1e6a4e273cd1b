"""Steering a proxy: the socket, and the keys of screen 8."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kafkascope.tui.process.control import Control, ControlError, ProxyWatch
from kafkascope.tui.screens import live
from tests.tui.pilots import ReadScene, text_of

pytestmark = pytest.mark.shown(live.BOARD)
STATUS = {
    "bootstrap": "127.0.0.1:19092",
    "mode": "map",
    "held": 2,
    "pid": 4711,
    "nodes": {"1": {"broker": "10.0.0.1:9092", "listener": "127.0.0.1:40001"}},
    "notices": ["no broker answers at b:1"],
}


class FakeProxy:
    """Answers as a proxy does, and keeps what it was asked to do."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []
        where = {"client": "10.0.0.4:51422", "broker": "10.0.1.2:9092", "client_id": "orders-svc"}
        frame = {"kind": "request", "api": "Produce", "version": 9, "correlation_id": 4} | where
        frame |= {"bytes": 18_204, "since_ns": 2_000_000_000, "summary": "orders"}
        self.held = [{"number": number, **frame} for number in (1, 2)]
        self.rules: list[dict[str, Any]] = []
        self.changed = asyncio.Event()
        state = {"in_flight": 2, "unsent": [0, 512], "stopped": ["hold", None], "held": [1]}
        self.connections = [{"number": 3, "node": 2, "opened_ns": 1_000_000_000, **where, **state}]

    async def states(self) -> AsyncGenerator[dict[str, Any], None]:
        while True:
            self.changed.clear()
            yield {
                "event": "state",
                "at_ns": 5_000_000_000,
                "held": list(self.held),
                "rules": list(self.rules),
                "status": STATUS,
                "metrics": {"requests_total": {"Produce": 7}},
            }
            await self.changed.wait()

    async def ask(self, do: str, **words: Any) -> dict[str, Any]:
        self.changed.set()
        match do:
            case "connections":
                self.changed.clear()
                return {"connections": list(self.connections)}
            case "show":
                return {"body": {"acks": -1, "topic_data": []}}
            case "fault":
                if "->" not in words["rule"]:
                    raise ControlError("FILTER -> ACTION is wanted")
                self.rules.append(
                    {"name": "r1", "rule": words["rule"], "side": "request", "matched": 0}
                )
                return {"rule": self.rules[-1]}
            case "remove":
                self.rules.clear()
                return {"removed": 1}
            case "release" | "drop" | "edit":
                self.done.append((do, *words.values()))
                number = words["number"]
                gone = [each for each in self.held if number in ("all", each["number"])]
                self.held = [each for each in self.held if each not in gone]
                return {"released": len(gone)}
        self.done.append((do, *words.values()))
        return {}

    async def close(self) -> None:
        pass


@pytest.fixture
def proxy(scene: ReadScene) -> FakeProxy:
    """What the board is attached to."""
    found = FakeProxy()
    scene.proxy = ProxyWatch(found)  # type: ignore[arg-type]
    return found


async def test_held_frames_are_released_and_dropped(proxy, app, pilot) -> None:
    assert "orders-svc" in text_of(app)
    await pilot.do("down", "d")
    await pilot.do("u")
    assert "No held frames" in text_of(app)
    await pilot.do("U")
    assert proxy.done == [("drop", 2), ("release", 1), ("release", "all")]


async def test_a_held_body_is_edited_as_json(proxy, app, pilot) -> None:
    await pilot.press("enter")
    await pilot.pause(0.1)
    area = app.screen.query_one("TextArea")
    area.text = '{"acks": 0,'
    await pilot.press("ctrl+s")
    assert "line 1, column 12" in text_of(app)
    area.text = "[]"
    await pilot.press("ctrl+s")
    assert "The body must be an object" in text_of(app)
    area.text = '{"acks": 0}'
    await pilot.press("ctrl+s")
    await pilot.pause(0.1)
    await pilot.press("enter")
    await pilot.pause(0.1)
    await pilot.press("escape")
    assert proxy.done == [("edit", 1, {"acks": 0})]


async def test_rules_are_added_and_removed(proxy, app, pilot, scene) -> None:
    await pilot.do("I", *"wrong", "enter")
    assert scene.told[-1] == "FILTER -> ACTION is wanted"
    await pilot.do("I", *"stale", "down", "enter")
    assert "stale-metadata" in text_of(app)
    app.board.enter_pane()
    await pilot.pause()
    await pilot.do("d")
    assert "No rules" in text_of(app)
    await pilot.do("i", "down", "down", "enter")
    assert proxy.done == [("hold", "api == Fetch")]


async def test_enter_in_an_empty_box_ends_the_hold_and_adds_no_rule(
    proxy, app, pilot, scene
) -> None:
    await pilot.do("i", *"api == Fetch", "enter")
    await pilot.press("i")
    await pilot.pause()
    assert app.screen.query_one("OptionList").highlighted is None
    await pilot.do("enter")
    await pilot.do("i", "escape", "I", "enter")
    assert proxy.done == [("hold", "api == Fetch"), ("hold", None)]
    assert proxy.rules == []
    # Observation that holding had stopped, while producers waited for the frames that were held.
    assert scene.told[-1] == ("Holding stopped; 2 frames are still held (U releases all).")


async def test_a_hold_that_ends_with_nothing_held_says_so(proxy, app, pilot, scene) -> None:
    proxy.held.clear()
    proxy.changed.set()
    await pilot.settle()
    await pilot.do("i", "enter")
    assert proxy.done == [("hold", None)]
    assert scene.told[-1] == "Holding stopped."


async def test_what_is_typed_is_taken_not_what_it_begins(proxy, app, pilot) -> None:
    await pilot.do("i", *"api == Prod", "enter")
    await pilot.do("i", *"api == Prod", "tab", *" and acks == 0", "enter")
    assert proxy.done == [("hold", "api == Prod"), ("hold", "api == Produce and acks == 0")]


async def test_tabs_tell_about_the_proxy(proxy, app, pilot) -> None:
    assert "3.0 s" in text_of(app)
    await pilot.do("R")
    assert "requests: hold" in text_of(app)
    await pilot.do("R")
    assert "127.0.0.1:19092" in text_of(app)
    assert "no broker answers at b:1" in text_of(app)
    await pilot.do("R")
    assert "requests_total" in text_of(app)


@pytest.fixture
def gone(scene: ReadScene, tmp_path: Path) -> None:
    scene.proxy = ProxyWatch(Control(tmp_path / "none.sock"))


async def test_a_proxy_that_is_gone_is_told(gone, app, pilot, scene) -> None:
    assert "the proxy does not respond" in text_of(app)
    await pilot.do("U")
    assert "the proxy does not respond" in scene.told[-1]


@asynccontextmanager
async def served(path: Path, *answers: bytes) -> AsyncIterator[tuple[Control, list[bytes]]]:
    """A control of a server that gives these answers, and what the server was asked."""
    heard: list[bytes] = []
    over: list[asyncio.Task[None] | None] = []
    left = list(answers)

    async def on_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        over.append(asyncio.current_task())
        while line := await reader.readline():
            heard.append(line)
            writer.write(left.pop(0))
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_unix_server(on_client, path):
        control = Control(path)
        yield control, heard
        await control.close()
        await asyncio.gather(*filter(None, over))


async def test_states_come_until_the_proxy_ends(tmp_path: Path) -> None:
    lines = b'{"ok":true}\n{"event":"notice"}\n{"event":"state","held":[]}\n{\n'
    async with (
        served(tmp_path / "proxy.sock", lines) as (control, heard),
        aclosing(control.states()) as states,
    ):
        assert (await anext(states))["held"] == []
        with pytest.raises(ControlError, match="does not respond"):
            await anext(states)
    assert heard == [b'{"do":"watch"}\n']


async def test_a_proxy_that_hangs_is_no_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = b'{"ok":true}\n{"event":"state","held":[]}\n'
    async with (
        served(tmp_path / "proxy.sock", lines) as (control, heard),
        aclosing(control.states()) as states,
    ):
        assert (await anext(states))["held"] == []
        # What comes in time came by now.
        monkeypatch.setattr("kafkascope.tui.process.control.TIMEOUT_S", 0.05)
        with pytest.raises(ControlError, match="no response"):
            await asyncio.wait_for(anext(states), 20)
    assert heard == [b'{"do":"watch"}\n']


async def test_questions_and_answers_are_lines_of_json(tmp_path: Path) -> None:
    answers = (b'{"ok":true,"released":1}\n', b'{"ok":false,"error":"no frame 4 is held"}\n')
    async with served(tmp_path / "proxy.sock", *answers, b"{\n", b"[]\n") as (control, heard):
        assert (await control.ask("release", number=3))["released"] == 1
        for do, why in (
            ("drop", "no frame 4 is held"),
            ("status", "does not respond"),
            ("status", "not an object"),
        ):
            with pytest.raises(ControlError, match=why):
                await control.ask(do, number=4)
    assert json.loads(heard[0]) == {"do": "release", "number": 3}
    assert len(heard) == 4
