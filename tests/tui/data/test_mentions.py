"""Findings in the list: signs, context, filters, jumps."""

from collections.abc import Iterator

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.filter.language import compile_query
from kafkascope.analyzer.findings import Findings
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.captures.inputs.spool import Spool
from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.mentions import Mentions
from kafkascope.tui.data.store import Store
from kafkascope.tui.settings.notes import Notes
from tests.kit.samples import CAPTURES
from tests.tui.pilots import program, run, text_of

SHOP = CAPTURES / "shop.pcap.zst"


@pytest.fixture(scope="module")
def shop() -> Iterator[tuple[Store, Findings]]:
    capture = open_capture([SHOP], spool=Spool())
    store, found = Store(capture.source.read, capture.context), Findings()
    capture.watch = found.saw
    for exchange in capture.exchanges():
        store.add(exchange)
        found.add(ExchangeBatch.of(row_of(exchange, capture.context.names), exchange))
    store.progress.done = True
    yield store, found
    capture.close()


class Counted:
    """Numbers that are there at once."""

    version, done, following, share, failure = 1, True, False, None, ""

    def __init__(self, found: Findings) -> None:
        self.found = found

    def get(self, name: str) -> Findings | None:
        return self.found if name == "findings" else None

    def settle(self) -> None: ...

    advance = close = settle


def test_every_exchange_knows_the_findings_whose_filter_selects_it(shop) -> None:
    store, found = shop
    mentions = Mentions(store, Notes().known)
    told = found.reported(store.session.context.names)
    mentions.update(told)
    while mentions.busy:
        mentions.advance(0.01)
    for finding in told:
        if not finding.filter:
            continue
        wanted = compile_query(finding.filter).mask(store.session).nonzero()[0]
        assert [
            i for i in wanted if finding in mentions.of(store.session.columns["number"][i])
        ] == [*wanted]
    errors = mentions.worst("error")
    assert errors
    assert all(mentions.sign(number) == ("◆", "!") for number in errors)
    mentions.update(told)
    assert not mentions.busy  # the same as before


class Growing(Counted):
    """Numbers that are half there at first."""

    done, share = False, 33

    def get(self, name: str) -> Findings | None:
        return super().get(name) if self.done or name != "findings" else Findings()


@pytest.fixture
def numbers(request: pytest.FixtureRequest, shop: tuple[Store, Findings]) -> Counted:
    """All that is counted, or `@pytest.mark.shown(Growing)`."""
    mark = request.node.get_closest_marker("shown")
    return (mark.args[0] if mark else Counted)(shop[1])


@pytest.fixture
def app(
    shop: tuple[Store, Findings], numbers: Counted, monkeypatch: pytest.MonkeyPatch
) -> ScopeApp:
    # However long ago the last look was, and however long it took.
    monkeypatch.setattr("kafkascope.tui.controllers.reading.AGAIN", 3600.0)
    return program(shop[0], few=10_000, counted=lambda text: numbers)


async def settled(app, pilot) -> None:
    while app.findings.busy:
        app.tick()
    await pilot.settle()


async def test_rows_have_signs_and_a_context_and_answer_to_filters(app, pilot, shop) -> None:
    store, found = shop
    await settled(app, pilot)
    causes = found.causes(store.session.context.names)
    assert sum(len(each.consequences) for each in causes) > 10
    words = ", ".join(
        f"{sum(each.severity == word for each in causes)} {word}s" for word in ("error", "warning")
    )
    assert f" {words} (7) " in text_of(app).splitlines()[0], "causes, as screen 7 and check"
    await pilot.do("slash", *"finding == address-unanswered", "enter")
    assert len(app.workspace.view) == 1
    assert "◆" in text_of(app)
    await pilot.do("R", "R")
    assert app.inspector.tab == "Context"
    screen = text_of(app)
    assert "error: Broker 3 advertises 172.17.0.4:29092" in screen
    assert "Test the connection" in screen
    await pilot.do("escape", "g", "e")
    # Probes of versions are answered with an error, and that is normal.
    assert "UNSUPPORTED_VERSION" not in store.result(app.list.index)


@pytest.mark.shown(Growing)
async def test_what_is_final_is_told_at_once(app, pilot, numbers) -> None:
    await settled(app, pilot)
    assert ": 7 " not in text_of(app).splitlines()[0]
    numbers.done, numbers.share, numbers.version = True, None, 2
    app.tick()
    await settled(app, pilot)
    assert "warnings (7)" in text_of(app).splitlines()[0]


@pytest.mark.shown(Growing)
async def test_what_comes_while_rows_come_waits(app, pilot, numbers) -> None:
    """Each update looks all rows up again: one with each tick takes time by their square."""
    numbers.get = Counted(numbers.found).get
    told = []
    tell = app.workspace.mentions.update
    app.workspace.mentions.update = lambda each: (told.append(len(each)), tell(each))
    for version in range(3, 30):
        numbers.version = version
        app.tick()
        await settled(app, pilot)
    assert len(told) <= 1
    numbers.done, numbers.share, numbers.version = True, None, 30
    app.tick()
    await settled(app, pilot)
    assert 1 <= len(told) <= 2


def test_numbers_of_what_is_marked_or_found_are_counted_here(store: Store) -> None:
    async def steps(app, pilot):
        app.workspace.notes.known.findings[2] = ("throttled",)
        await pilot.press("slash", *"finding == throttled", "enter", "3", "L")
        numbers = app.host._numbers(limited=True)
        while not numbers.done:
            numbers.advance()
        assert [line["requests"] for line in numbers.get("clients").rows()] == [1]

    run(store, steps, counted=lambda text: Counted(Findings()))
