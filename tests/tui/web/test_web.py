"""The terminal UI in a browser: who may come in, what is served, a tab from begin to end."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from kafkascope.proxy.engine.directory import Address, open_socket
from kafkascope.tui.cli import main, to_look_at
from kafkascope.tui.limits import LIMITS
from kafkascope.tui.web.door import NotHere, address_of, refusal
from tests.hosts import BENT, LOOPBACK
from tests.interop.needs import CI
from tests.kit.samples import SAMPLES

if not CI:  # there it is an error when the extra is missing
    for _module in ("aiohttp", "textual_serve"):
        pytest.importorskip(_module, reason="needs the extra web")

import aiohttp
from aiohttp.test_utils import TestClient, TestServer
from textual import events

from kafkascope.tui.web.driver import TabDriver
from kafkascope.tui.web.server import FILES, OURS, Site, packet, serving

ROOT = Path(__file__).parents[3]
DEMO = SAMPLES / "libraries.pcap"
LONG = 90.0
"""Seconds: a busy machine is slow, and nothing is lost by waiting for what comes."""
TOKEN = "right"
OPEN = [sys.executable, "-P", "-m", "kafkascope.tui.cli", "open"]
BEGINS = "<begins>"
"""In place of what a UI asks a terminal for first: another screen."""


# --- who may come in ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["127.0.0.1:80", "localhost:9000", "LOCALHOST", "[::1]:1", "127.9.0.1"]
)
def test_a_page_of_ours_comes_in(host: str) -> None:
    assert refusal(TOKEN, TOKEN, host, None, websocket=False) is None
    assert refusal(TOKEN, TOKEN, host, f"http://{host}", websocket=True) is None


@pytest.mark.parametrize(
    "host",
    [
        *(None, "", "evil.example", "evil.example:80", "127.0.0.1.evil.example"),
        *("localhost.evil.example", "evil.example#localhost", "10.0.0.1:80", "localhost:80\n"),
        *("localhost\t", "\tlocalhost", "localhost\t:80", "localhost.", "localho\u017ft"),
        *("localhost:\u0669", "localhost:65536", "127.0.0.999", "127.0.0.\u0661", "[::1"),
        *("[127.0.0.1]", "user@localhost"),
    ],
)
def test_a_name_that_was_bent_to_this_machine_does_not(host: str | None) -> None:
    assert refusal(TOKEN, TOKEN, host, f"http://{host}", websocket=True)
    assert refusal(TOKEN, TOKEN, host, None, websocket=False)


@pytest.mark.parametrize(
    "origin",
    [
        *("https://evil.example", "null", "", "https://127.0.0.1:80", "http://127.0.0.1:81"),
        "http://127.0.0.1:80.evil.example",
    ],
)
def test_pages_of_other_sites_do_not(origin: str) -> None:
    assert refusal(TOKEN, TOKEN, "127.0.0.1:80", origin, websocket=True)
    assert refusal(TOKEN, TOKEN, "127.0.0.1:80", origin, websocket=False)


def test_a_websocket_without_an_origin_does_not() -> None:
    assert refusal(TOKEN, TOKEN, "127.0.0.1:80", None, websocket=True)


@pytest.mark.parametrize("given", ["", "wrong", "Right", "right ", "righté", "\udcff"])
def test_nobody_comes_in_without_the_token(given: str) -> None:
    assert "token" in (refusal(TOKEN, given, "127.0.0.1:80", None, websocket=False) or "")


# --- the command line ---------------------------------------------------------------------------


def test_addresses_of_this_machine() -> None:
    assert str(address_of("0")) == "127.0.0.1:0"
    assert str(address_of("8000")) == "127.0.0.1:8000"
    assert str(address_of("localhost:8000")) == "127.0.0.1:8000"
    assert str(address_of("[::1]:8000")) == "[::1]:8000"


@pytest.mark.parametrize("text", ["0.0.0.0:80", "[::]:80", "10.1.2.3:80", "example.com:80"])
def test_other_addresses_are_refused_with_the_way_that_works(text: str) -> None:
    with pytest.raises(NotHere, match=r"this machine only.*ssh -L 80:127"):
        address_of(text)


@pytest.mark.parametrize("text", ["", "x", "65536", ":80", "127.0.0.1", "-1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(NotHere, match="write PORT or HOST:PORT"):
        address_of(text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-", "--web"], "--web needs files"),
        (["-i", "lo", "--web"], "--web needs files"),
        (["--attach", "--web"], "leave out --web"),
        ([str(DEMO), "--web-port", "80"], "--web-port needs --web"),
        ([str(DEMO), "--web", "--web-port", "0.0.0.0:80"], "this machine only"),
        ([str(DEMO), "--web", "-Y", "latency >"], "latency >"),
    ],
)
def test_what_cannot_be_served_is_refused_with_a_sentence(words: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["open", *words])
    assert done.exit_code == 2
    assert said in done.output


@pytest.mark.parametrize("module", ["aiohttp", "textual_serve"])
def test_without_the_extra_one_sentence_says_what_to_install(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    done = CliRunner().invoke(main, ["open", str(DEMO), "--web"])
    assert done.exit_code == 5
    assert done.output.startswith("kafkascope open --web needs the extra 'web': ")


def test_a_file_and_the_option_mean_open() -> None:
    assert to_look_at([str(DEMO), "--web"])
    assert to_look_at([str(DEMO), "--web-port=80", "--web"])


def test_other_uses_of_open_load_nothing_of_it() -> None:
    code = "import sys, kafkascope.tui.open, kafkascope.tui.app\n"
    code += "print(*{'aiohttp', 'textual_serve'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


# --- what pages say -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('["stdin", "é"]', b"D\0\0\0\2\xc3\xa9"),
        ('["focus"]', b'M\0\0\0\x11{"type": "focus"}'),
        ('["stdin", "\\ud800"]', b"D\0\0\0\1?"),
        ('["stdin", 7]', None),
        ('["quit"]', None),
        ('["ping", "1"]', None),
        ("[]", None),
        ("{}", None),
        ("nonsense", None),
        ("[" * 200_000, None),
    ],
)
def test_what_a_page_says_is_checked(text: str, expected: bytes | None) -> None:
    assert packet(text) == expected


@pytest.mark.parametrize(
    ("told", "width"), [("90", 90), ("0", 1), ("1e99", 80), ("9999999", 1000), ('"x"', 80)]
)
def test_sizes_stay_within_reason(told: str, width: int) -> None:
    data = packet(f'["resize", {{"width": {told}, "height": 7}}]')
    assert json.loads(data[5:]) == {"type": "resize", "width": width, "height": 7}


def test_a_tab_with_the_keyboard_is_not_taken_for_one_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TabDriver, "focused", False)

    waiting: list[Callable[[], object]] = []
    heard: list[str] = []

    class Pump:
        """An app as far as messages go: one after the other."""

        def post_message(self, event: events.Event) -> None:
            waiting.append(lambda: heard.append(type(event).__name__))

        def call_later(self, function: Callable[[Any], object], event: events.Event) -> None:
            waiting.append(lambda: function(event))

    pump = Pump()
    driver = TabDriver.__new__(TabDriver)
    driver._app = pump  # type: ignore[assignment]
    # So Textual's driver begins, while the tab already tells that it has the keyboard.
    pump.call_later(pump.post_message, events.AppBlur())
    driver.on_meta("focus", {})
    while waiting:
        waiting.pop(0)()
    assert heard == ["AppBlur", "AppFocus"]
    assert TabDriver.focused  # for the next UI of the process


# --- what is served -----------------------------------------------------------------------------


@asynccontextmanager
async def visit(
    *command: str, title: str = "t"
) -> AsyncIterator[tuple[TestClient[Any, Any], Site]]:
    """A site whose tabs are opened by a command that does nothing, or by this one."""
    site = Site([*command] or [sys.executable, "-c", ""], title)
    async with TestClient(TestServer(site.application())) as client:
        yield client, site


def open_tab(client: TestClient[Any, Any], site: Site) -> Any:
    origin = str(client.make_url("/")).rstrip("/")
    return client.ws_connect(f"/{site.token}/ws", origin=origin)


async def test_only_what_lies_below_the_token_is_served() -> None:
    async with visit() as (client, site):
        for path in ("/", "/wrong/", "/wrong/ws", "/wrong/page.js", "/static/", "/ws"):
            async with client.get(path) as answer:
                assert (answer.status, path) == (403, path)
                assert site.token not in await answer.text()
        for path in ("server.py", "..", "%2e%2e/page.js", "static/"):
            async with client.get(f"/{site.token}/{path}") as answer:
                assert answer.status in (403, 404)
        for name in ("", *FILES):
            async with client.get(f"/{site.token}/{name}") as answer:
                assert answer.status == 200
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                assert "Set-Cookie" not in answer.headers


async def asked(client: TestClient[Any, Any], target: str, host: str) -> bytes:
    """What a client gets that puts any text into its request."""
    reader, writer = await asyncio.open_connection(client.host, client.port)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    told = await reader.read()
    writer.close()
    return told


async def test_another_host_or_origin_gets_nothing() -> None:
    async with visit() as (client, site):
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            async with client.get(f"/{site.token}/", headers=headers) as answer:
                assert answer.status == 403
                assert "textual.js" not in await answer.text()
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await client.ws_connect(f"/{site.token}/ws", headers=headers)
        for host in ("localhost\t:80", "localho\u017ft", "localhost:99999"):
            answer = await asked(client, f"/{site.token}/", host)
            assert b"textual.js" not in answer
            assert b" 403 " in answer.split(b"\r\n")[0]
        whole = f"http://evil.example/{site.token}/"
        assert b" 403 " in (await asked(client, whole, "localhost")).split(b"\r\n")[0]
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await client.ws_connect(f"/{site.token}/ws")  # no browser leaves the origin out


Ask = Callable[..., Awaitable[bytes]]


@asynccontextmanager
async def at_the_door() -> AsyncIterator[tuple[Site, Ask]]:
    """A site that listens as `serve` has it, and a client that sends parts and reads to the end."""
    site = Site([sys.executable, "-c", ""], "t")
    listening = open_socket(Address("127.0.0.1", 0))

    async def ask(first: bytes, *later: bytes, pause: bool = False) -> bytes:
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        told = b""
        writer.write(first)
        try:
            for part in later:
                if pause:
                    await asyncio.sleep(0.01)
                else:
                    told += await reader.readuntil(b"\r\n")
                writer.write(part)
            while data := await reader.read(65_536):
                told += data
        except ConnectionError:
            pass  # it was closed with something unread
        finally:
            writer.close()
        return told

    async with asyncio.timeout(LONG), serving(site, listening):
        yield site, ask


def head(site: Site, host: bytes, protocol: bytes = b"HTTP/1.1") -> bytes:
    return b"GET /" + site.token.encode() + b"/ " + protocol + b"\r\n" + host + b"\r\n\r\n"


@pytest.mark.parametrize("protocol", [b"HTTP/1.1", b"HTTP/1.0"])
async def test_only_hosts_of_ours_get_the_page(protocol: bytes) -> None:
    async with at_the_door() as (site, ask):
        for host in LOOPBACK:
            assert b"textual.js" in await ask(head(site, host, protocol)), host
        for host in BENT:
            told = await ask(head(site, host, protocol))
            assert told.split()[1] in (b"400", b"403"), host
            assert b"textual.js" not in told, host


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    "first", [b"Connection: keep-alive", b"Upgrade: h2c", b"Content-Length: 9"]
)
async def test_a_connection_has_one_request(first: bytes, *, waits: bool) -> None:
    async with at_the_door() as (site, ask):
        good = head(site, b"Host: localhost\r\n" + first)
        for host in (b"Host: localhost", *BENT):
            bent = head(site, host)
            told = await (ask(good, bent) if waits else ask(good + bent))
            assert told.count(b"HTTP/1.1 ") == 1, host
            if told.endswith(b"</html>\n"):
                assert b"\r\nConnection: close\r\n" in told


async def test_a_head_comes_in_pieces_and_has_an_end() -> None:
    async with at_the_door() as (site, ask):
        whole = head(site, b"Host: localhost")
        for cut in (1, len(whole) - 3, len(whole) - 1):
            assert b"textual.js" in await ask(whole[:cut], whole[cut:], pause=True)
        assert b" 400 " in await ask(whole[:-2] + b"X: " + bytes(2 * LIMITS.request_head_bytes))


def test_every_site_has_a_token_of_its_own() -> None:
    tokens = {Site([], "").token for _ in range(3)}
    assert len(tokens) == 3
    assert min(map(len, tokens)) >= 32


async def test_the_page_takes_nothing_from_elsewhere() -> None:
    async with visit(title="<b>") as (client, site), client.get(f"/{site.token}/") as answer:
        text, policy = await answer.text(), answer.headers["Content-Security-Policy"]
        assert answer.content_type == "text/html"
    assert "default-src 'none'" in policy
    assert "*" not in policy
    assert "https:" not in policy
    referred = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert {*referred} == {"data:,", "page.css", "page.js", "textual.js", "xterm.css"}
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    for name in ("page.css", "page.js", "textual.js", "xterm.css"):
        text = re.sub(r"/\*.*?\*/", "", FILES[name].read_text("utf-8"), flags=re.DOTALL)
        assert re.findall(r"https?://", text) == []
        assert {*re.findall(r"url\(\"?([^)\"]+)", text)} <= {"mono.ttf"}


def test_all_of_our_page_is_there() -> None:
    assert [name for name, path in FILES.items() if not path.is_file()] == []
    assert (OURS / "page.html").is_file()


async def test_a_process_that_cannot_be_started_is_told_in_the_tab(tmp_path: Path) -> None:
    async with visit(str(tmp_path / "none")) as (client, site), open_tab(client, site) as tab:
        assert b"no process can be started" in (await tab.receive()).data
        assert (await tab.receive()).type is aiohttp.WSMsgType.CLOSE


async def test_a_ui_that_is_stuck_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkascope.tui.web.server.GRACE", 0.1)
    # With a process of its own, which holds what it draws on.
    stuck = (
        "import subprocess, sys, time\n"
        "rest = 'import time; time.sleep(600)'\n"
        "subprocess.Popen([sys.executable, '-c', rest, *sys.argv[1:]])\n"
        "time.sleep(600)\n"
    )
    command = (sys.executable, "-c", stuck, str(tmp_path))
    async with asyncio.timeout(LONG), visit(*command) as (client, site):
        async with open_tab(client, site):
            while len(processes(tmp_path)) < 2:
                await asyncio.sleep(0.02)
        while processes(tmp_path):
            await asyncio.sleep(0.02)


# --- from begin to end --------------------------------------------------------------------------


@contextmanager
def served(capture: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program and the address that it printed."""
    with subprocess.Popen(
        [*OPEN, str(capture), "--web"], stdout=PIPE, text=True, cwd=ROOT
    ) as program:
        try:
            yield program, program.stdout.readline().strip()
        finally:
            program.kill()


def processes(capture: Path) -> list[bytes]:
    """Command lines with this name in them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue  # it has just ended
        if os.fsencode(capture) in words:
            found.append(words)
    return found


def wait_until_nothing_is_left(capture: Path) -> None:
    until = time.monotonic() + LONG
    while left := processes(capture):
        assert time.monotonic() < until, left
        time.sleep(0.05)


class Tab:
    """What a browser is here: a websocket, and what came through it as plain text."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.text = ""

    async def see(self, *wanted: str) -> None:
        """Read until all of it was drawn since the last key."""
        while not all(each in self.text for each in wanted):
            message = await self.socket.receive(timeout=LONG)
            assert message.type is aiohttp.WSMsgType.BINARY, (wanted, self.text[-2000:])
            drawn = message.data.decode().replace("\x1b[?1049h", BEGINS)
            self.text += re.sub(r"\x1b\[[0-9;?<]*[a-zA-Z]", "", drawn)

    async def press(self, keys: str) -> None:
        self.text = ""
        await self.socket.send_json(["stdin", keys])

    async def closes(self) -> None:
        """Read until there is nothing more."""
        async for message in self.socket:
            assert message.type is aiohttp.WSMsgType.BINARY


def connect(client: aiohttp.ClientSession, address: str) -> Any:
    """A tab on the page."""
    origin = "http://" + urlsplit(address).netloc
    return client.ws_connect(f"{address}ws?width=120&height=40", origin=origin)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """The demo capture under a name that no other test has in a command line."""
    path = tmp_path / "demo.pcap"
    path.write_bytes(DEMO.read_bytes())
    return path


def test_two_tabs_from_the_first_screen_to_ctrl_c(capture: Path) -> None:
    async def use(address: str, program: subprocess.Popen[str]) -> None:
        async with (
            aiohttp.ClientSession() as client,
            connect(client, address) as one,
            connect(client, address) as two,
        ):
            first, second = Tab(one), Tab(two)
            await first.see("336 exchanges", "ApiVersionsResponse")
            await second.see("336 exchanges", "ApiVersionsResponse")
            await first.press("7")
            await first.see("Authentication of aiokafka", "Fix")
            # Another UI in the same process: the same capture, read once more, in the new size.
            await first.socket.send_json(["resize", {"width": 150, "height": 30}])
            await first.press("1\x12")
            await first.see(BEGINS)
            first.text = first.text.partition(BEGINS)[2]
            await first.see("336 exchanges", "ApiVersionsResponse")
            await first.press("Q")
            await first.closes()
            await second.press("e")
            await second.see("MetadataRequest v13")
            program.send_signal(signal.SIGINT)
            await second.closes()

    with served(capture) as (program, address):
        asyncio.run(use(address, program))
        assert program.wait(LONG) == 0
        wait_until_nothing_is_left(capture)


def test_a_closed_tab_and_a_killed_server_leave_nothing_behind(capture: Path) -> None:
    async def until(*, a_tab: bool) -> None:
        while (len(processes(capture)) > 1) is not a_tab:
            await asyncio.sleep(0.05)

    async def use(address: str, program: subprocess.Popen[str]) -> None:
        async with aiohttp.ClientSession() as client:
            async with connect(client, address):
                await until(a_tab=True)
            await until(a_tab=False)
            async with connect(client, address):
                await until(a_tab=True)
                program.kill()

    with served(capture) as (program, address):
        asyncio.run(asyncio.wait_for(use(address, program), LONG))
        program.wait(LONG)
        wait_until_nothing_is_left(capture)


def test_what_is_no_http_makes_no_noise(capture: Path) -> None:
    command = [*OPEN, str(capture), "--web"]
    with subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True, cwd=ROOT) as program:
        host = urlsplit(program.stdout.readline()).netloc.rpartition(":")
        with socket.create_connection((host[0], int(host[2])), LONG) as client:
            client.sendall(b"GET \x1b]0;x\x07 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 400 " in client.recv(1000)
        with socket.create_connection((host[0], int(host[2])), LONG) as client:
            client.sendall(b"\x16\x03\x01" + bytes(2 * LIMITS.request_head_bytes))
            assert b" 400 " in client.recv(1000)
        program.send_signal(signal.SIGINT)
        said = program.stderr.read()
        assert said == "kafkascope: open it in a browser on this machine; ctrl+c ends it\n"
        assert program.wait(LONG) == 0


def test_a_ui_that_cannot_begin_says_why_in_its_tab(capture: Path) -> None:
    async def use(address: str) -> None:
        async with aiohttp.ClientSession() as client, connect(client, address) as one:
            await Tab(one).see("no such file or folder")

    with served(capture) as (_, address):
        capture.unlink()
        asyncio.run(use(address))
