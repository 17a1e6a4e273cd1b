"""What stands in the place of rows where there are none."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from kafkascope.captures.build import Composer
from kafkascope.captures.model import Endpoint
from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.feed import Feed
from kafkascope.tui.data.store import Store
from kafkascope.tui.data.workspace import Workspace
from kafkascope.tui.process.control import Control, ProxyWatch
from kafkascope.tui.views.empty import empty
from tests.explosion.packets import CLIENT
from tests.explosion.turns import BROKER, write_packets
from tests.tui.pilots import StillFeed, counted, idle, run, text_of

CAPTURES = Path(__file__).parents[2] / "analyzer" / "captures"
SMALL = (80, 24)
OTHER = BROKER._replace(port=7000)


def shown(path: Path, *keys: str, size: tuple[int, int] = SMALL) -> str:
    """The screen after a file was read and some keys were pressed."""

    async def main() -> str:
        feed = Feed([str(path)])
        try:
            app = ScopeApp(feed, path.name)
            async with app.run_test(size=size) as pilot:
                until = time.monotonic() + 60
                while not app.workspace.store.progress.done and time.monotonic() < until:
                    await pilot.pause(0.05)
                await idle(app, pilot)
                app.clear_notifications()
                for key in keys:
                    await pilot.press(key)
                await idle(app, pilot)
                return text_of(app)
        finally:
            feed.close()

    return asyncio.run(main())


def written(folder: Path, *sent: bytes, broker: Endpoint = BROKER) -> Path:
    """A capture of a connection on which a client sends something."""
    connection = Composer(CLIENT, broker)
    packets = connection.open()
    for data in sent:
        packets += connection.send(0, data)
    write_packets(folder / "made.pcapng", [*packets, *connection.close(0), *connection.close(1)])
    return folder / "made.pcapng"


@pytest.fixture(scope="module")
def encrypted() -> Path:
    return CAPTURES / "tls" / "tls13-psk.pcap.gz"


def test_an_encrypted_capture_asks_for_a_key_log(encrypted: Path) -> None:
    words = " ".join(shown(encrypted).split())
    for part in ("TLS connection", "--keylog", "kafkascope tls-keys", "ctrl+o"):
        assert part in words


def test_boards_say_so_too(encrypted: Path) -> None:
    assert "--keylog" in shown(encrypted, "5")


def test_only_health_checks(tmp_path: Path) -> None:
    words = " ".join(shown(written(tmp_path)).split())
    assert "no data was sent in the connection" in words
    assert "health check" in words
    assert "2 show connections" in words


def test_brokers_on_another_port(tmp_path: Path) -> None:
    words = " ".join(shown(written(tmp_path, b"\xfe\xfd\xfc" * 30, broker=OTHER)).split())
    assert "-d tcp.port==PORT,kafka" in words
    assert "d decode other ports as Kafka" in words


def test_a_capture_without_packets(tmp_path: Path) -> None:
    write_packets(tmp_path / "none.pcapng", [])
    assert "No exchanges: the capture has no packets." in shown(tmp_path / "none.pcapng")


def test_the_sentence_stays(encrypted: Path) -> None:
    assert "--keylog" in shown(encrypted, "2", "1", "slash", "escape", "down")


def live(empty: str = "") -> Store:
    store = Store()
    store.progress.ring, store.progress.empty = True, empty
    return store


class LiveFeed(StillFeed):
    """A feed that goes on."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        store.progress.done = False


def of_feed(store: Store, proxy: ProxyWatch | None = None) -> str:
    return empty(Workspace(LiveFeed(store), "live"), proxy).text  # type: ignore[arg-type]


def test_no_packets_yet() -> None:
    assert of_feed(live("no packets yet: check that the traffic passes here")) == (
        "No packets yet: check that the traffic passes here."
    )


def test_a_proxy_that_waits_names_its_address_and_what_is_wrong() -> None:
    proxy = ProxyWatch(Control(Path("none.sock")))
    proxy.state = {
        "status": {"bootstrap": "127.0.0.1:19092", "notices": ["no broker answers at b:1"]}
    }
    text = of_feed(live(), proxy)
    assert "bootstrap.servers=127.0.0.1:19092" in text
    assert "No broker answers at b:1." in text


def test_a_filter_that_matches_nothing(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("slash", *"api == Vote", "enter")
        await idle(app, pilot)
        screen = text_of(app)
        assert f"0 of {len(store):,} exchanges match the filter" in screen
        assert "api == Vote" in screen
        assert "Esc  go back, or remove the filter" in screen
        await pilot.press("escape")
        await idle(app, pilot)
        assert len(app.workspace.view) == len(store)
        assert "match the filter" not in text_of(app)

    run(store, steps, SMALL)


def test_a_board_that_follows_the_filter_says_so(store: Store) -> None:
    async def steps(app, pilot):
        await pilot.press("slash", *"api == Vote", "enter")
        await idle(app, pilot)
        await pilot.press("5")
        await counted(app, pilot)
        if not app.host.board.limited:
            await pilot.press("L")
            await counted(app, pilot)
        words = " ".join(text_of(app).split())
        assert "No consumer groups in the capture, among exchanges that match" in words

    run(store, steps, SMALL)


def test_all_exchanges_are_ignored(store: Store) -> None:
    workspace = Workspace(StillFeed(store), "x")  # type: ignore[arg-type]
    workspace.notes.ignored.add(1)
    assert empty(workspace).text.endswith("are ignored.")
