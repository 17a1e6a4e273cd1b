"""The add-on in the mitmproxy that is installed: options, commands, metadata, what it refuses."""

import asyncio
import warnings
from collections.abc import Coroutine, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy import contentviews, ctx, exceptions, tcp
from mitmproxy.proxy.mode_specs import ProxyMode

from kafkascope.bridges.mitmproxy import script
from kafkascope.bridges.mitmproxy.addon import MARK, MATCHES, PAIRS, KafkaAddon
from tests.kit.wire import beat, heartbeat, produce, request, response

with warnings.catch_warnings():
    # What mitmproxy's own add-ons import warns of each other.
    warnings.simplefilter("ignore", DeprecationWarning)
    from mitmproxy.test import taddons, tflow

BROKER = ("127.0.0.1", 19092)


def run(what: Coroutine[Any, Any, None]) -> None:
    asyncio.get_event_loop().run_until_complete(what)


@pytest.fixture
def addon() -> Iterator[KafkaAddon]:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    made = KafkaAddon()
    try:
        with taddons.context(loadcore=False) as context:
            context.master.event_loop.close()  # it makes one of its own
            context.master.event_loop = loop
            context.options.add_option("listen_host", str, "", "")
            run(loaded(context, made))
            yield made
            made.done()
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def loaded(context: Any, addon: KafkaAddon) -> None:
    context.master.addons.add(addon)


def flow_of(*parts: tuple[bool, bytes], live: bool = False) -> tcp.TCPFlow:
    flow = tflow.ttcpflow(messages=[tcp.TCPMessage(*part) for part in parts])
    flow.live = live
    flow.client_conn.peername = ("127.0.0.1", 50000)
    flow.server_conn.peername = BROKER
    return flow


def seen(addon: KafkaAddon, flow: tcp.TCPFlow) -> None:
    run(addon.tcp_message(flow))


def test_pairs_are_metadata_and_survive_a_file(addon: KafkaAddon) -> None:
    flow = flow_of((True, heartbeat(1)), (False, beat(1, error_code=27)))
    seen(addon, flow)
    (pair,) = flow.metadata[PAIRS]
    assert (pair["api"], pair["tcp_messages"]) == ("Heartbeat", [0, 1])
    again = tcp.TCPFlow.from_state(flow.get_state())
    assert again.metadata[PAIRS] == [pair]
    assert "REBALANCE_IN_PROGRESS" in viewed(flow)


def viewed(flow: tcp.TCPFlow) -> str:
    """Return what mitmproxy shows of the second message."""
    if hasattr(contentviews, "prettify_message"):  # since 12
        return str(contentviews.prettify_message(flow.messages[1], flow).text)
    lines = contentviews.get_message_content_view("auto", flow.messages[1], flow)[1]
    return "".join(words for line in lines for _, words in line)


def test_a_filter_marks_flows(addon: KafkaAddon) -> None:
    good = flow_of((True, heartbeat(1)), (False, beat(1)))
    bad = flow_of((True, heartbeat(1)), (False, beat(1, error_code=27)))
    for flow in (good, bad):
        seen(addon, flow)
    ctx.master.commands.execute("kafkascope.filter 'api == Heartbeat and failed'")
    assert "kafkascope.exchanges" in ctx.master.commands.commands
    assert (good.marked, bad.marked) == ("", MARK)
    assert (MATCHES in good.metadata, bad.metadata[MATCHES]) == (False, 1)
    rows = addon.exchanges([good, bad])
    assert [each[0] for each in rows] == ["flow", "1"]
    assert "REBALANCE_IN_PROGRESS" in rows[1][1]
    later = flow_of((True, heartbeat(2)), (False, beat(2, error_code=22)))
    seen(addon, later)
    assert later.marked == MARK
    addon.filter("")
    assert (bad.marked, MATCHES in bad.metadata) == ("", False)
    with pytest.raises(exceptions.CommandError, match="kafka_filter"):
        addon.filter("api ==")


def test_flows_end_with_what_waits(addon: KafkaAddon, caplog: pytest.LogCaptureFixture) -> None:
    flow = flow_of((True, heartbeat(1)))
    seen(addon, flow)
    assert PAIRS not in flow.metadata
    addon.tcp_end(flow)
    assert flow.metadata[PAIRS][0]["state"] == "open"
    addon.tcp_error(flow_of((True, produce(1))))


def metadata_response(correlation_id: int) -> bytes:
    brokers = [
        {"node_id": node, "host": "127.0.0.1", "port": 19092 + node, "rack": None}
        for node in (1, 2)
    ]
    return response("Metadata", 9, correlation_id, brokers=brokers)


def test_addresses_lead_back_and_pieces_are_held(addon: KafkaAddon) -> None:
    flow = flow_of((True, request("Metadata", 9, 1, topics=None)), live=True)
    flow.client_conn.proxy_mode = ProxyMode.parse("reverse:tcp://127.0.0.1:19092@127.0.0.1:0")
    flow.client_conn.sockname = ("127.0.0.1", 8080)
    relayed = addon._relay(flow)
    assert relayed.pass_on(flow.messages[0]) == []
    whole = metadata_response(1)
    pieces = [tcp.TCPMessage(False, whole[:30]), tcp.TCPMessage(False, whole[30:])]
    for piece in pieces:
        assert relayed.pass_on(piece) == []
    assert pieces[0].content == b""
    assert len(pieces[1].content) == len(whole)
    assert pieces[1].content != whole
    specs = relayed.cluster.plan.specs()
    assert [each.split("@")[0] for each in specs] == [
        "reverse:tcp://127.0.0.1:19093",
        "reverse:tcp://127.0.0.1:19094",
    ]
    assert addon._relay(flow) is relayed
    offline = flow_of((True, heartbeat(1)))
    assert addon._relay(offline) is None
    forward = flow_of((True, heartbeat(1)), live=True)
    forward.client_conn.proxy_mode = ProxyMode.parse("transparent")
    assert addon._relay(forward) is None


def test_a_version_that_nobody_knows_is_answered_in_the_brokers_place(addon: KafkaAddon) -> None:
    flow = flow_of((True, b"\0\0\0\x0a\0\x12\0\x63\0\0\0\x07\xff\xff"), live=True)
    flow.client_conn.proxy_mode = ProxyMode.parse("reverse:tcp://127.0.0.1:19092@127.0.0.1:0")
    relayed = addon._relay(flow)
    (answer,) = relayed.pass_on(flow.messages[0])
    assert flow.messages[0].content == b""
    assert answer[4:10] == b"\0\0\0\x07\0\x23"
    assert relayed.pass_on(tcp.TCPMessage(False, answer)) == []


def test_metadata_services_are_no_brokers(addon: KafkaAddon) -> None:
    flow = flow_of((True, heartbeat(1)), live=True)
    flow.client_conn.proxy_mode = ProxyMode.parse("reverse:tcp://127.0.0.1:19092@127.0.0.1:0")
    relayed = addon._relay(flow)
    spec = "reverse:tcp://169.254.169.254:80@127.0.0.1:7001"
    addon._made[spec] = relayed.cluster
    for host, allowed in (("169.254.169.254", False), ("10.1.2.3", False), ("127.0.0.1", True)):
        server = SimpleNamespace(address=(host, 80), error=None)
        client = SimpleNamespace(proxy_mode=ProxyMode.parse(spec))
        run(addon.server_connect(SimpleNamespace(server=server, client=client)))
        assert (server.error is None) == allowed
    other = SimpleNamespace(proxy_mode=ProxyMode.parse("reverse:tcp://10.1.2.3:80@7002"))
    server = SimpleNamespace(address=("10.1.2.3", 80), error=None)
    run(addon.server_connect(SimpleNamespace(server=server, client=other)))
    assert server.error is None  # the user named it


def test_the_command_prints_the_script() -> None:
    from click.testing import CliRunner

    from kafkascope.bridges.mitmproxy.command import mitmproxy

    said = CliRunner().invoke(mitmproxy, [], standalone_mode=False).output.strip()
    assert Path(said).read_text("utf-8") == Path(str(script.__file__)).read_text("utf-8")
    assert [type(each) for each in script.addons] == [KafkaAddon]
