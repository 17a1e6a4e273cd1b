"""Steering a proxy: the socket, and the keys of screen 8."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from kafkascope.tui.process.control import Control, ControlError, ProxyWatch
from kafkascope.tui.screens import live
from kafkascope.tui.views.dialogs import Editor
from tests.tui.boards import ReadScene, perform, settled, text_of

SAMPLES = Path(__file__).parents[3] / "captures" / "samples"


@pytest.fixture(scope="module")
def demo() -> ReadScene:
    return ReadScene(SAMPLES / "libraries.pcap")


class FakeProxy:
    """Answers as a proxy does, and keeps what it was asked to do."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.held = [
            {
                "number": number,
                "kind": "request",
                "api": "Produce",
                "version": 9,
                "correlation_id": 4,
                "client_id": "orders-svc",
                "client": "10.0.0.4:51422",
                "broker": "10.0.1.2:9092",
                "bytes": 18_204,
                "since_ns": 2_000_000_000,
                "summary": "orders",
            }
            for number in (1, 2)
        ]
        self.rules: list[dict[str, Any]] = []
        self.changed = asyncio.Event()
        self.connections = [
            {
                "number": 3,
                "client": "10.0.0.4:51422",
                "broker": "10.0.1.2:9092",
                "node": 2,
                "client_id": "orders-svc",
                "opened_ns": 1_000_000_000,
                "in_flight": 2,
                "unsent": [0, 512],
                "stopped": ["hold", None],
                "held": [1],
            }
        ]

    async def states(self) -> AsyncGenerator[dict[str, Any], None]:
        while True:
            self.changed.clear()
            yield {
                "event": "state",
                "at_ns": 5_000_000_000,
                "held": list(self.held),
                "rules": list(self.rules),
                "status": {
                    "bootstrap": "127.0.0.1:19092",
                    "mode": "map",
                    "held": 2,
                    "pid": 4711,
                    "nodes": {"1": {"broker": "10.0.0.1:9092", "listener": "127.0.0.1:40001"}},
                    "notices": ["no broker answers at b:1"],
                },
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


async def looked(app: Any, pilot: Any) -> None:
    """Wait until all that was asked for is done, and shown."""
    app.board.tick()
    for _ in range(3):
        steering = [each for each in app.workers if each.group == "steer"]
        if steering:  # of none it would wait for all, and the watch never ends
            await app.workers.wait_for_complete(steering)
        await pilot.pause(0.02)
        app.board.tick()
    await pilot.pause()


def with_proxy(demo: ReadScene) -> tuple[ReadScene, FakeProxy]:
    scene, proxy = demo.fresh(), FakeProxy()
    scene.proxy = ProxyWatch(proxy)  # type: ignore[arg-type]
    return scene, proxy


def test_held_frames_are_released_and_dropped(demo: ReadScene) -> None:
    scene, proxy = with_proxy(demo)

    async def steps(app, pilot):
        await looked(app, pilot)
        assert "orders-svc" in text_of(app)
        await pilot.press("down", "d")
        await looked(app, pilot)
        await pilot.press("u")
        await looked(app, pilot)
        assert "No held frames" in text_of(app)
        await pilot.press("U")
        await looked(app, pilot)

    perform(live.BOARD, scene, steps)
    assert proxy.done == [("drop", 2), ("release", 1), ("release", "all")]


def test_a_held_body_is_edited_as_json(demo: ReadScene) -> None:
    scene, proxy = with_proxy(demo)

    async def steps(app, pilot):
        await looked(app, pilot)
        await pilot.press("enter")
        await pilot.pause(0.1)
        assert isinstance(app.screen, Editor)
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

    perform(live.BOARD, scene, steps)
    assert proxy.done == [("edit", 1, {"acks": 0})]


def test_rules_are_added_and_removed(demo: ReadScene) -> None:
    scene, proxy = with_proxy(demo)

    async def steps(app, pilot):
        await looked(app, pilot)
        await pilot.press("I", *"wrong", "enter")
        await looked(app, pilot)
        assert scene.told[-1] == "FILTER -> ACTION is wanted"
        await pilot.press("I", *"stale", "down", "enter")
        await looked(app, pilot)
        assert "stale-metadata" in text_of(app)
        app.board.enter_pane()
        await pilot.pause()
        await pilot.press("d")
        await looked(app, pilot)
        assert "No rules" in text_of(app)
        await pilot.press("i", "down", "down", "enter")
        await looked(app, pilot)

    perform(live.BOARD, scene, steps)
    assert proxy.done == [("hold", "api == Fetch")]


def test_enter_in_an_empty_box_ends_the_hold_and_adds_no_rule(demo: ReadScene) -> None:
    scene, proxy = with_proxy(demo)

    async def steps(app, pilot):
        await looked(app, pilot)
        await pilot.press("i", *"api == Fetch", "enter")
        await looked(app, pilot)
        await pilot.press("i")
        await pilot.pause()
        assert app.screen.query_one("OptionList").highlighted is None
        await pilot.press("enter")
        await looked(app, pilot)
        await pilot.press("i", "escape", "I", "enter")
        await looked(app, pilot)

    perform(live.BOARD, scene, steps)
    assert proxy.done == [("hold", "api == Fetch"), ("hold", None)]
    assert proxy.rules == []
    # Observation that holding had stopped, while producers waited for the frames that were held.
    assert scene.told[-1] == ("Holding stopped; 2 frames are still held (U releases all).")


def test_a_hold_that_ends_with_nothing_held_says_so(demo: ReadScene) -> None:
    scene, proxy = with_proxy(demo)
    proxy.held.clear()

    async def steps(app, pilot):
        await looked(app, pilot)
        await pilot.press("i", "enter")
        await looked(app, pilot)

    perform(live.BOARD, scene, steps)
    assert proxy.done == [("hold", None)]
    assert scene.told[-1] == "Holding stopped."


def test_what_is_typed_is_taken_not_what_it_begins(demo: ReadScene) -> None:
    scene, proxy = with_proxy(demo)

    async def steps(app, pilot):
        await looked(app, pilot)
        await pilot.press("i", *"api == Prod", "enter")
        await looked(app, pilot)
        await pilot.press("i", *"api == Prod", "tab", *" and acks == 0", "enter")
        await looked(app, pilot)

    perform(live.BOARD, scene, steps)
    assert proxy.done == [("hold", "api == Prod"), ("hold", "api == Produce and acks == 0")]


def test_tabs_tell_about_the_proxy(demo: ReadScene) -> None:
    scene, _ = with_proxy(demo)

    async def steps(app, pilot):
        await looked(app, pilot)
        assert "3.0 s" in text_of(app)
        await pilot.press("R")
        await settled(app, pilot)
        assert "requests: hold" in text_of(app)
        await pilot.press("R")
        await settled(app, pilot)
        assert "127.0.0.1:19092" in text_of(app)
        assert "no broker answers at b:1" in text_of(app)
        await pilot.press("R")
        await settled(app, pilot)
        assert "requests_total" in text_of(app)

    perform(live.BOARD, scene, steps)


def test_a_proxy_that_is_gone_is_told(demo: ReadScene, tmp_path: Path) -> None:
    scene = demo.fresh()
    scene.proxy = ProxyWatch(Control(tmp_path / "none.sock"))

    async def steps(app, pilot):
        await looked(app, pilot)
        assert "the proxy does not respond" in text_of(app)
        await pilot.press("U")
        await looked(app, pilot)
        assert "the proxy does not respond" in scene.told[-1]

    perform(live.BOARD, scene, steps)


def serve(answers: list[bytes], path: Path, ask: Any) -> list[bytes]:
    """Run `ask` against a server that sends these answers."""
    heard: list[bytes] = []

    over: list[asyncio.Task[None] | None] = []

    async def on_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        over.append(asyncio.current_task())
        while line := await reader.readline():
            heard.append(line)
            writer.write(answers.pop(0))
        writer.close()
        await writer.wait_closed()

    async def main() -> None:
        async with await asyncio.start_unix_server(on_client, path):
            control = Control(path)
            await ask(control)
            await control.close()
            await asyncio.gather(*filter(None, over))

    asyncio.run(main())
    return heard


def test_states_come_until_the_proxy_ends(tmp_path: Path) -> None:
    async def ask(control: Control) -> None:
        async with aclosing(control.states()) as states:
            assert (await anext(states))["held"] == []
            with pytest.raises(ControlError, match="does not respond"):
                await anext(states)

    lines = b'{"ok":true}\n{"event":"notice"}\n{"event":"state","held":[]}\n{\n'
    assert serve([lines], tmp_path / "proxy.sock", ask) == [b'{"do":"watch"}\n']


def test_a_proxy_that_hangs_is_no_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(control: Control) -> None:
        async with aclosing(control.states()) as states:
            assert (await anext(states))["held"] == []
            monkeypatch.setattr(
                "kafkascope.tui.process.control.TIMEOUT_S", 0.05
            )  # what comes in time came by now
            with pytest.raises(ControlError, match="no response"):
                await asyncio.wait_for(anext(states), 20)

    lines = b'{"ok":true}\n{"event":"state","held":[]}\n'
    assert serve([lines], tmp_path / "proxy.sock", ask) == [b'{"do":"watch"}\n']


def test_questions_and_answers_are_lines_of_json(tmp_path: Path) -> None:
    async def ask(control: Control) -> None:
        assert (await control.ask("release", number=3))["released"] == 1
        with pytest.raises(ControlError, match="no frame 4 is held"):
            await control.ask("drop", number=4)
        with pytest.raises(ControlError, match="does not respond"):
            await control.ask("status")
        with pytest.raises(ControlError, match="not an object"):
            await control.ask("status")

    answers = [
        b'{"ok":true,"released":1}\n',
        b'{"ok":false,"error":"no frame 4 is held"}\n',
        b"{\n",
        b"[]\n",
    ]
    heard = serve(answers, tmp_path / "proxy.sock", ask)
    assert json.loads(heard[0]) == {"do": "release", "number": 3}
    assert len(heard) == 4
