"""Numbers of a part of the capture say so on all screens; those of all of it are final."""

import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.exchanges import rows
from kafkascope.analyzer.exchanges.offline import OpenInput, open_capture
from kafkascope.analyzer.findings import accumulators
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.numbers import ProcessNumbers
from kafkascope.tui.data.store import Store
from kafkascope.tui.screens import SCREENS
from tests.kit.samples import SAMPLES
from tests.matrix import each_nth, mostly_slow
from tests.tui.pilots import filled, idle, program, text_of

FINAL = ("in the capture", "at the end of the capture", "No findings", "works with all")
SIZES = ((160, 50), (80, 24))


class Half:
    """Numbers of the first exchanges, of all when they are told to go on."""

    store: Store

    def __init__(self, capture: OpenInput, exchanges: list[Exchange], first: int) -> None:
        self.names, self._rest = capture.context.names, exchanges[first:]
        self.version, self.done, self.following, self.failure = 1, False, False, ""
        self.share: int | None = 43
        self._counted: dict[str, Any] = {**accumulators()}
        self._take(exchanges[:first])

    def _take(self, exchanges: list[Exchange]) -> None:
        for exchange in exchanges:
            row = rows.row_of(exchange, self.names)
            for each in self._counted.values():
                each.add(ExchangeBatch.of(row, exchange))

    def go_on(self) -> None:
        self._take(self._rest)
        self.version, self.done = self.version + 1, True

    def get(self, name: str) -> Any:
        return self._counted[name]

    def settle(self) -> None: ...

    advance = close = settle


@pytest.fixture
def half(request: pytest.FixtureRequest) -> Half:
    """The numbers of `@pytest.mark.shown(sample, share)`."""
    name, share = request.node.get_closest_marker("shown").args
    if "share" in request.fixturenames:
        share = request.getfixturevalue("share")
    capture = open_capture([SAMPLES / name])
    exchanges = list(capture.exchanges())
    found = Half(capture, exchanges, int(share * len(exchanges)))
    found.store = filled(Store(capture.source.read, capture.context), exchanges)
    return found


@pytest.fixture
def app(half: Half) -> ScopeApp:
    return program(half.store, counted=lambda text: half)


async def ticked(app: ScopeApp, pilot: Any) -> None:
    """What happens without a key."""
    for _ in range(3):
        app.host._due = 0.0
        app.findings.due = 0.0
        app.tick()
        await pilot.pause(0.02)


@pytest.mark.parametrize(
    ("number", "size"),
    mostly_slow(
        product(SCREENS, SIZES), {(3, SIZES[0]), (5, SIZES[-1]), (7, SIZES[0])}.__contains__
    ),
    ids=str,
)
@pytest.mark.parametrize("share", each_nth([0.4, 0.0], 2))
@pytest.mark.shown("libraries.pcap", None)
async def test_every_screen_says_that_counting_goes_on(
    app, pilot, half, number, share, size
) -> None:
    await pilot.press(str(number))
    await ticked(app, pilot)
    for _ in app.host.board.tabs:
        screen = text_of(app)
        assert "counting 43 %" in screen
        told = screen.replace("missing in the capture", "")  # in bytes
        assert [word for word in FINAL if word in told] == []
        await pilot.press("R")
        await pilot.pause(0.05)
    half.go_on()
    await ticked(app, pilot)
    for _ in app.host.board.tabs:
        screen = text_of(app)
        assert "counting" not in screen
        assert "so far" not in screen
        await pilot.press("R")
        await pilot.pause(0.05)


@pytest.mark.shown("rebalance.pcap", 0.5)
async def test_rebalances_that_are_counted_so_far_are_not_all_of_them(app, pilot, half) -> None:
    await pilot.press("5")
    await ticked(app, pilot)
    early = [line.rstrip() for line in text_of(app).splitlines() if "rebalances in" in line]
    assert [line.endswith("so far") for line in early] == [True]
    half.go_on()
    await ticked(app, pilot)
    final = [line.rstrip() for line in text_of(app).splitlines() if "rebalances in" in line]
    assert final
    assert final != early
    assert "so far" not in final[0]


@pytest.mark.shown("aiokafka.pcap", 0.4)
async def test_a_connection_is_open_at_the_end_only_when_all_is_counted(app, pilot, half) -> None:
    await pilot.press("2")
    await ticked(app, pilot)
    assert "still open so far" in text_of(app)
    half.go_on()
    await ticked(app, pilot)
    assert "still open at the end of the capture" in text_of(app)


@pytest.mark.shown("librdkafka.pcap", 0.4)
async def test_only_what_breaks_is_judged_early(app, pilot, half) -> None:
    await pilot.press("3")
    await ticked(app, pilot)
    board: Any = app.host.board
    assert {line["verdict"] for line in board.sheet.lines} <= {"breaks", "..."}
    assert "no verdict yet" in text_of(app)
    half.go_on()
    await ticked(app, pilot)
    assert "..." not in {line["verdict"] for line in board.sheet.lines}
    assert "no verdict yet" not in text_of(app)


@pytest.mark.shown("sasl.pcap", 0.9)
async def test_findings_of_a_part_are_so_far_in_header_context_and_filter(app, pilot, half) -> None:
    app.findings.few = 1_000_000
    await ticked(app, pilot)
    assert app.workspace.mentions.told
    screen = text_of(app)
    assert "so far (7)" in screen
    app.inspector.show_tab("Context")
    await idle(app, pilot)
    assert "findings so far: counting 43 %" in text_of(app)
    app.show_filter("finding")
    await idle(app, pilot)
    assert "counting 43 %: partial" in text_of(app)
    await pilot.press("x")
    await pilot.pause()
    assert "shown exchanges so far" in text_of(app)
    await pilot.press("escape")
    half.go_on()
    await ticked(app, pilot)
    await idle(app, pilot)
    screen = text_of(app)
    assert "so far" not in screen
    assert "counting" not in screen
    assert "applied" in screen


@pytest.mark.shown("libraries.pcap", 0.4)
async def test_a_line_that_is_copied_early_says_so(app, pilot, half, monkeypatch) -> None:
    copied: list[str] = []
    monkeypatch.setattr(ScopeApp, "copy_to_clipboard", lambda self, text: copied.append(text))
    await pilot.press("6", "y")
    half.go_on()
    await ticked(app, pilot)
    await pilot.press("y")
    assert ["not final" in text for text in copied] == [True, False]


def test_a_reader_that_dies_leaves_numbers_that_are_not_called_final() -> None:
    numbers = ProcessNumbers([str(SAMPLES / "libraries.pcap")])
    numbers._process.kill()
    while not numbers.done:
        numbers.advance()
    assert numbers.failure
    numbers.get("latency")
    numbers.close()


def test_a_file_that_grows_is_counted_as_it_grows(tmp_path: Path) -> None:
    path, data = tmp_path / "growing.pcap", (SAMPLES / "libraries.pcap").read_bytes()
    with path.open("wb") as file:
        file.write(data[:100_001])
        file.flush()
        numbers = ProcessNumbers([str(path)])
        try:
            taken(numbers, lambda: numbers.following and numbers.get("rates") is not None)
            assert not numbers.done
            early = sum(line["requests"] for line in numbers.get("latency").rows())
            file.write(data[100_001:])
            file.close()
            taken(numbers, lambda: numbers.done)
            assert not numbers.failure
            final = sum(line["requests"] for line in numbers.get("latency").rows())
            assert 0 < early < final
        finally:
            numbers.close()


def test_a_file_that_nobody_follows_any_more_has_final_numbers(tmp_path: Path) -> None:
    path = tmp_path / "growing.pcap"
    with path.open("wb") as file:
        file.write((SAMPLES / "libraries.pcap").read_bytes()[:100_001])
        file.flush()
        numbers = ProcessNumbers([str(path)])
        taken(numbers, lambda: numbers.following)
        numbers.settle()
        taken(numbers, lambda: numbers._ended)
        assert (numbers.done, numbers.failure) == (True, "")
        assert numbers.get("latency").rows()


def taken(numbers: ProcessNumbers, there: Callable[[], bool]) -> None:
    """Take in numbers until something is so, or for a minute."""
    until = time.monotonic() + 60
    while not there():
        numbers.advance()
        time.sleep(0.02)
        assert time.monotonic() < until
