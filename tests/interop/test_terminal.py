"""The terminal UI on a live proxy: a real client's traffic shows while it happens."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.brokers import Cluster, free_ports
from tests.interop.drivers import drive
from tests.interop.scenarios import make_topics
from tests.terminals import PROGRAM, Terminal

pytestmark = pytest.mark.interop


def test_a_proxied_client_is_seen_while_it_works(
    brokers: Callable[[str], Cluster], tmp_path: Path
) -> None:
    cluster = brokers("4.4.0")
    # Long before it is written: a topic that is new has no leader for a moment.
    make_topics(cluster, "ui.live")
    (port,) = free_ports(1)
    proxy = f"{PROGRAM} proxy --upstream {cluster.bootstrap()} --listen 127.0.0.1:{port} --open"
    with Terminal(proxy) as terminal:
        terminal.wait_for("live", "exchanges")
        address = f"127.0.0.1:{port}"
        with drive("kafka-python", tmp_path, address, client="seen-live") as driver:
            driver.step("Produce", topic="ui.live", codec="gzip", count=7)
            terminal.wait_for("seen-live", "Produce v")
            terminal.type("/")
            terminal.write("api == Produce")
            terminal.wait_for(" shown")
            terminal.type("Enter")
            # The list is filtered, too: else the key goes to the end of what was there before.
            terminal.wait_for("Enter details", "Produce v", without="ApiVersions v")
            terminal.type("G")
            terminal.wait_for("ok ui.live", "7 records", "ProduceResponse")
            terminal.type("8")
            terminal.wait_for("[Rules]")
        terminal.type("Q")
        terminal.wait_for("EXIT 0")
