"""Exchanges that rules of a proxy changed have a sign in the list and a line in the detail."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkascope.analyzer.conversation.tampering import NOTE
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.model import Note
from kafkascope.analyzer.topics import TopicNames
from kafkascope.tui.cli import main
from kafkascope.tui.data.store import Store
from kafkascope.tui.document.document import Document
from kafkascope.tui.views.exchanges import RULE
from tests.tui.pilots import idle, run, text_of

SAMPLES = Path(__file__).parents[3] / "captures" / "samples"
DEED = Note("note", f"{NOTE}error LEADER_NOT_AVAILABLE")


def test_a_row_that_a_rule_changed_has_a_sign() -> None:
    capture = open_capture([SAMPLES / "kafka-python.pcap"])
    found = Store(capture.source.read, capture.context)
    for exchange in capture.exchanges():
        found.add(exchange)
    found.session.remarks_by_row[2] = ((), (DEED,))

    async def steps(app, pilot):
        await idle(app, pilot)
        rows = [line for line in text_of(app).splitlines() if f"{RULE} " in line]
        assert len(rows) == 1
        assert f"{found.session.columns['number'][2]} " in rows[0]

    run(found, steps, (120, 40))


def test_the_detail_names_the_rule() -> None:
    exchange = next(iter(open_capture([SAMPLES / "kafka-python.pcap"]).exchanges()))
    exchange.notes = (*exchange.notes, DEED)
    lines = Document(exchange, TopicNames()).tree("Request").lines
    rule, _, legend, header = lines[:4]
    assert (rule.label, rule.value) == ("proxy rule", "error LEADER_NOT_AVAILABLE")
    assert legend.value == "~ round trip 12 µs  # server 1.5 ms"
    assert header.label == "RequestHeader v2"


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("x.pcap",), "INPUT"),
        (("-i", "lo", "-f", "port 9092"), "-i, -f"),
        (("--keylog", "x.keys"), "--keylog"),
    ],
)
def test_options_of_captures_are_refused_with_attach(words: tuple[str, ...], wrong: str) -> None:
    done = CliRunner().invoke(main, ["open", *words, "--attach", ""])
    assert done.exit_code == 2
    assert f"leave out {wrong}" in done.output


def test_lines_are_refused_where_the_screen_is_opened() -> None:
    done = CliRunner().invoke(main, ["proxy", "--upstream", "b:9092", "--open", "--json"])
    assert done.exit_code == 2
    assert "--json" in done.output
