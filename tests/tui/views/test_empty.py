"""What stands in the place of rows where there are none."""

import time
from contextlib import closing
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
from tests.kit.samples import CAPTURES
from tests.tui.pilots import StillFeed, show, text_of

SMALL = (80, 24)
OTHER = BROKER._replace(port=7000)


def shown(path: Path, *keys: str) -> str:
    """The screen after a file was read and some keys were pressed."""
    screens = []

    async def steps(app, pilot):
        until = time.monotonic() + 60
        while not app.workspace.store.progress.done and time.monotonic() < until:
            await pilot.pause(0.05)
        await pilot.settle()
        app.clear_notifications()
        await pilot.do(*keys)
        screens.append(text_of(app))

    with closing(Feed([str(path)])) as feed:
        show(ScopeApp(feed, path.name), steps, SMALL)
    return screens[0]


def written(folder: Path, *sent: bytes, broker: Endpoint = BROKER) -> Path:
    """A capture of a connection on which a client sends something."""
    connection = Composer(CLIENT, broker)
    packets = connection.open()
    for data in sent:
        packets += connection.send(0, data)
    write_packets(folder / "made.pcapng", [*packets, *connection.close(0), *connection.close(1)])
    return folder / "made.pcapng"


ENCRYPTED = CAPTURES / "tls" / "tls13-psk.pcap.gz"
GARBAGE = b"\xfe\xfd\xfc" * 30


@pytest.mark.parametrize(
    ("keys", "parts"),
    [
        ((), ("TLS connection", "--keylog", "kafkascope tls-keys", "ctrl+o")),
        (("5",), ("--keylog",)),  # boards say so, too
        (("2", "1", "slash", "escape", "down"), ("--keylog",)),  # the sentence stays
    ],
)
def test_an_encrypted_capture_asks_for_a_key_log(
    keys: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    words = " ".join(shown(ENCRYPTED, *keys).split())
    assert [part for part in parts if part not in words] == []


def test_only_health_checks(tmp_path: Path) -> None:
    words = " ".join(shown(written(tmp_path)).split())
    for part in ("no data was sent in the connection", "health check", "2 show connections"):
        assert part in words


def test_brokers_on_another_port(tmp_path: Path) -> None:
    words = " ".join(shown(written(tmp_path, GARBAGE, broker=OTHER)).split())
    assert "-d tcp.port==PORT,kafka" in words
    assert "d decode other ports as Kafka" in words


def test_a_capture_without_packets(tmp_path: Path) -> None:
    write_packets(tmp_path / "none.pcapng", [])
    assert "No exchanges: the capture has no packets." in shown(tmp_path / "none.pcapng")


def of_feed(empty_: str = "", proxy: ProxyWatch | None = None) -> str:
    """What stands in the list of live traffic."""
    feed = StillFeed(Store())
    progress = feed.store.progress
    progress.done, progress.ring, progress.empty = False, True, empty_
    return empty(Workspace(feed, "live"), proxy).text  # type: ignore[arg-type]


def test_no_packets_yet() -> None:
    assert of_feed("no packets yet: check that the traffic passes here") == (
        "No packets yet: check that the traffic passes here."
    )


def test_a_proxy_that_waits_names_its_address_and_what_is_wrong() -> None:
    proxy = ProxyWatch(Control(Path("none.sock")))
    proxy.state = {
        "status": {"bootstrap": "127.0.0.1:19092", "notices": ["no broker answers at b:1"]}
    }
    text = of_feed(proxy=proxy)
    assert "bootstrap.servers=127.0.0.1:19092" in text
    assert "No broker answers at b:1." in text


@pytest.mark.shown(size=SMALL)
async def test_a_filter_that_matches_nothing(app, pilot, store) -> None:
    await pilot.do("slash", *"api == Vote", "enter")
    screen = text_of(app)
    assert f"0 of {len(store):,} exchanges match the filter" in screen
    assert "api == Vote" in screen
    assert "Esc  go back, or remove the filter" in screen
    await pilot.do("escape")
    assert len(app.workspace.view) == len(store)
    assert "match the filter" not in text_of(app)


@pytest.mark.shown(size=SMALL)
async def test_a_board_that_follows_the_filter_says_so(app, pilot) -> None:
    await pilot.do("slash", *"api == Vote", "enter")
    await pilot.do("5")
    if not app.host.board.limited:
        await pilot.do("L")
    words = " ".join(text_of(app).split())
    assert "No consumer groups in the capture, among exchanges that match" in words


def test_all_exchanges_are_ignored(store: Store) -> None:
    workspace = Workspace(StillFeed(store), "x")  # type: ignore[arg-type]
    workspace.notes.ignored.add(1)
    assert empty(workspace).text.endswith("are ignored.")
