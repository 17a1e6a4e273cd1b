"""Captures for assistants: the tools, their bounds, and the protocol with its own client."""

import asyncio
import json
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import kafkascope as ks
from kafkascope.bridges.mcp.server import server_of
from kafkascope.bridges.mcp.toolbox import ABOUT, MOST, TOOLS, Toolbox, answer, description
from kafkascope.errors import Error
from kafkascope.library.capture import open as open_capture
from kafkascope.library.tables import TABLES
from tests.kit.samples import ROOT, SAMPLES
from tests.small_tables import FEW, small_tables  # noqa: F401  (a fixture)

DEMO = SAMPLES / "demo.pcap.zst"


@pytest.fixture(scope="module")
def toolbox() -> Toolbox:
    return Toolbox(ks.open(DEMO))


def data(text: str) -> Any:
    told = json.loads(text)
    assert told["about_data"] == ABOUT
    return told["data"]


def test_the_overview_counts(toolbox: Toolbox) -> None:
    told = data(toolbox.overview())
    assert told["exchanges"] == sum(1 for _ in ks.open(DEMO))
    assert list(told["findings"].values()) == [2, 4, 2, 2, 20]  # as `check` counts them
    assert sum(told["findings"].values()) == len(ks.open(DEMO).findings())
    assert {each["client_id"] for each in told["clients"]} == {
        each["client_id"] for each in ks.open(DEMO).clients()
    }


def test_all_rows_come_page_by_page(toolbox: Toolbox) -> None:
    numbers: list[int] = []
    page: int | None = 1
    while page is not None:
        told = json.loads(toolbox.exchanges("failed", page=page))
        numbers += [each["number"] for each in told["data"]]
        page = told.get("next_page")
    assert numbers == [each.number for each in ks.open(DEMO, filter="failed")]
    assert data(toolbox.exchanges("conn == 0"))[0]["connection"] == 0
    assert "no more rows" in toolbox.exchanges("failed", page=1000)
    with pytest.raises(ks.Error, match="start at 1"):
        toolbox.exchanges(page=0)


def test_a_finding_leads_to_its_exchanges(toolbox: Toolbox) -> None:
    found = [each for each in data(toolbox.findings("error")) if each["filter"]]
    assert found
    for each in found:
        first = data(toolbox.exchanges(each["filter"]))[0]
        whole = data(toolbox.exchange(first["number"]))
        assert whole["number"] == first["number"]
        assert "request" in whole


def test_records_tables_and_help(toolbox: Toolbox) -> None:
    record = data(toolbox.records("topic == orders"))[0]
    assert record["topic"] == "orders"
    by = data(toolbox.table("latency", by="api,client"))[0]
    assert {"api", "client_id", "p95_ms"} <= by.keys()
    assert "Fetch, api key 1, version 4" in toolbox.grammar("Fetch", 4)
    assert "OffsetCommitValue" in toolbox.grammar("OffsetCommitValue")
    assert json.loads(toolbox.error_help("unknown_member_id"))["code"] == 25
    assert json.loads(toolbox.error_help("25"))["name"] == "UNKNOWN_MEMBER_ID"
    assert any(each["field"] == "latency" for each in json.loads(toolbox.filter_fields("latency")))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda box: box.exchange(10**6), "no exchange"),
        (lambda box: box.exchanges("apy == 1"), "unknown field"),
        (lambda box: box.table("moon"), "there is no table"),
        (lambda box: box.findings("grave"), "grave"),
        (lambda box: box.error_help("NO_SUCH"), "unknown error"),
        (lambda box: box.grammar("Fetsch"), "Fetsch"),
        (lambda box: box.grammar("Fetch", 99), "99"),
    ],
)
def test_what_is_not_there_is_an_error_of_ours(
    toolbox: Toolbox, ask: Callable[[Toolbox], str], said: str
) -> None:
    with pytest.raises(ks.Error, match=said):
        ask(toolbox)


def test_secrets_are_masked() -> None:
    box = Toolbox(ks.open(SAMPLES / "sasl.pcap"))
    (number, *_) = [
        each.number for each in ks.open(SAMPLES / "sasl.pcap", filter="api == SaslAuthenticate")
    ]
    token = data(box.exchange(number))["request"]["auth_bytes"]
    assert set(b64decode(token)) == {ord("*")}


@pytest.mark.parametrize(
    "value",
    ["x" * 10**6, ["y" * 5000] * 5000, {str(n): n for n in range(10**5)}, [[["z"] * 99] * 99] * 99],
)
def test_answers_are_bounded(value: Any) -> None:
    assert len(answer(value)) < 2 * MOST


def test_depth_is_bounded() -> None:
    deep: Any = "end"
    for _ in range(500):
        deep = [deep]
    assert "(left out)" in answer(deep)


def test_text_of_traffic_is_escaped() -> None:
    told = answer({"client_id": "a\x1b[2Jb\u202ec\u009bd"})
    assert told.isascii() or all(each.isprintable() for each in told)
    assert json.loads(told)["data"]["client_id"] == "a\x1b[2Jb\u202ec\u009bd"


# --- the protocol


def talked(story: Callable[[Any], Any], *arguments: str) -> Any:
    """What a client of the SDK's own finds in a conversation with the command."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def main() -> Any:
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "kafkascope", "integrations", "mcp", *arguments],
            cwd=ROOT,
        )
        async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            return await story(session)

    return asyncio.run(main())


def test_the_server_has_the_version_of_kafkascope() -> None:
    made = server_of(ks.open(DEMO))
    assert made._mcp_server.version == version("kafkascope")


def test_the_protocols_client_finds_the_tools_and_calls_them() -> None:
    async def story(session: Any) -> Any:
        tools = (await session.list_tools()).tools
        found = await session.call_tool("exchanges", {"filter": "api == Produce"})
        wrong = await session.call_tool("exchanges", {"filter": "apy == 1"})
        other = await session.call_tool("findings", {"severity": "error"})
        return tools, found, wrong, other

    tools, found, wrong, other = talked(story, str(DEMO))
    assert [each.name for each in tools] == list(TOOLS)
    assert all(
        each.annotations.readOnlyHint and not each.annotations.openWorldHint for each in tools
    )
    assert [each.description for each in tools] == [description(name) for name in TOOLS]
    assert {each["api"] for each in data(found.content[0].text)} == {"Produce"}
    assert wrong.isError
    assert "unknown field" in wrong.content[0].text
    assert other.isError
    assert "its arguments: level, page" in other.content[0].text


def test_it_ends_in_order_and_says_what_is_wrong(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kafkascope", "integrations", "mcp"]
    done = subprocess.run([*command, str(DEMO)], input=b"", capture_output=True, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = subprocess.run([*command, str(tmp_path / "no.pcap")], capture_output=True, cwd=ROOT)
    assert done.returncode == 3
    assert b"no such file" in done.stderr
    done = subprocess.run([*command, "-"], capture_output=True, cwd=ROOT)
    assert done.returncode == 2
    assert b"stdin carries the protocol" in done.stderr


# --- the tools of assistants with tables that dropped most of what was counted --------------------


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("path", FEW, ids=lambda path: path.name)
def test_tools_answer_with_what_small_tables_kept(path: Path) -> None:
    with open_capture([path]) as capture:
        box = Toolbox(capture)
        answers = [box.overview(), box.findings("chat"), box.exchanges("finding")]
        answers += [box.table(name) for name in TABLES]
        try:
            answers.append(box.exchange(1))
        except Error:
            assert '"exchanges":0' in answers[0]
    assert all("data" in json.loads(each) for each in answers)
