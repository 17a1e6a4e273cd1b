"""Steering a proxy from outside, its counters over HTTP, and the command line."""

import asyncio
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner

from kafkascope.proxy import answers
from kafkascope.proxy.cli import proxy
from kafkascope.proxy.control.attach import running
from kafkascope.proxy.control.control import REFUSED, Control, runtime_folder, socket_path
from kafkascope.proxy.control.exposition import Exposition
from kafkascope.proxy.engine.directory import Address, parse_address
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.rules.faults import FAULTS
from kafkascope.tui.cli import main
from tests.hosts import BENT, LOOPBACK
from tests.kit import proxy as kit
from tests.kit.proxy import beat, proxied, pulse, until
from tests.kit.samples import SAMPLES

SAMPLE = str(SAMPLES / "sasl-old.pcap")


def answered(control: Control, line: bytes) -> bytes:
    """The answer to a line that only asks."""
    request, refusal = answers.read(line)
    if refusal:
        return refusal
    try:
        return answers.response(request, control.steering.do(request))
    except REFUSED as error:
        return answers.response(request, error)


def caller(proxy: KafkaProxy) -> Callable[..., dict[str, Any]]:
    """What asks a proxy to do something, and returns its answer."""
    control = Control(proxy)

    def do(word: str, **told: Any) -> dict[str, Any]:
        line = json.dumps({"do": word, **told}).encode()
        return dict(json.loads(answered(control, line)))

    return do


async def test_frames_are_held_shown_edited_dropped_and_released() -> None:
    upstream = kit.Noted(kit.echo)
    async with proxied(upstream) as made:
        do = caller(made)
        assert do("hold", filter="api == Heartbeat")["ok"]
        client = await made.client()
        client.send(*(beat(number, group_id="g") for number in (1, 2, 3)))
        await until(lambda: len(made.held))
        (first,) = do("held")["held"]
        assert (first["api"], first["kind"]) == ("Heartbeat", "request")
        assert do("show", number=first["number"])["body"]["group_id"] == "g"
        assert do("drop", number=first["number"])["ok"]
        await until(lambda: len(made.held))
        (second,) = do("held")["held"]
        body = do("show", number=second["number"])["body"] | {"group_id": "a longer one"}
        wrong = do("edit", number=second["number"], body=body | {"generation_id": "x"})
        assert not wrong["ok"]
        assert do("edit", number=second["number"], body=body)["ok"]
        await until(lambda: len(made.held))
        assert do("release", number="all") == {"ok": True, "released": 1}
        assert [await client.frame() for _ in range(2)] == [pulse(2), pulse(3)]
        assert upstream.asked == [beat(2, group_id="a longer one"), beat(3, group_id="g")]
        assert do("hold", filter=None)["rules"] == []
        assert len(made.rules) == 0


async def test_a_held_response_can_be_edited() -> None:
    async with proxied() as made:
        do = caller(made)
        do("hold", filter="api == Heartbeat", on="response")
        client = await made.client()
        client.send(beat())
        await until(lambda: len(made.held))
        (held,) = do("held")["held"]
        assert held["kind"] == "response"
        body = do("show", number=held["number"])["body"] | {"error_code": 27}
        assert do("edit", number=held["number"], body=body)["ok"]
        assert await client.frame() == pulse(1, 27)


def test_rules_are_added_listed_and_removed() -> None:
    do = caller(KafkaProxy("127.0.0.1:1"))
    assert do("fault", rule="api == Fetch -> drop once", name="one")["ok"]
    assert [rule["name"] for rule in do("rules")["rules"]] == ["one"]
    assert do("remove", name="one") == {"ok": True, "removed": 1}
    assert do("rules")["rules"] == []


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"do": "dance"}, "'dance'"),
        ({"do": "release"}, "'number' is missing"),
        ({"do": "drop", "number": 5}, "no frame 5 is held"),
        ({"do": "fault", "rule": "nonsense"}, "no ->"),
        ({"do": "stop"}, "cannot be stopped"),
        ({"do": "fault", "rule": 5}, "`rule` must be a string"),
        ({"do": "remove", "name": ["one"]}, "`name` must be a string"),
        ({"do": "hold", "filter": {}}, "`filter` must be a string"),
        ([], "expected an object"),
    ],
)
def test_what_cannot_be_done_is_said(told: Any, sentence: str) -> None:
    control = Control(KafkaProxy("127.0.0.1:1"))
    answer = json.loads(answered(control, json.dumps(told).encode()))
    assert answer["ok"] is False
    assert sentence in answer["error"]
    for line in (b"\xff{", b"[" * 100_000):
        assert json.loads(answered(control, line))["ok"] is False


@pytest.mark.parametrize(
    "before", ["nothing", "dead socket", "empty file", "link", "file", "fifo", "folder"]
)
async def test_the_socket_takes_no_mode_and_no_link_of_what_was_there(
    tmp_path: Path, before: str
) -> None:
    path, victim = tmp_path / "control.sock", tmp_path / "victim"
    victim.write_bytes(b"theirs")
    if before == "dead socket":
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
    elif before == "link":
        path.symlink_to(victim)
    elif before == "fifo":
        os.mkfifo(path)
    elif before == "folder":
        path.mkdir()
    elif before != "nothing":
        path.write_bytes(b"" if before == "empty file" else b"of the user")
    if before not in ("link", "nothing"):
        path.chmod(0o777)

    async with proxied() as made:
        control = Control(made)
        if before in ("file", "fifo", "folder"):
            with pytest.raises(OSError, match="not a socket"):
                await control.listen(path)
            return
        await control.listen(path)
        assert stat.S_ISSOCK(path.lstat().st_mode)
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b'{"do":"status","id":7}\n')
        told = json.loads(await reader.readline())
        assert (told["ok"], told["id"], told["bootstrap"]) == (True, 7, made.bootstrap)
        writer.close()
        with pytest.raises(OSError, match="another process listens"):
            await Control(made).listen(path)
        await control.close()
    assert victim.read_bytes() == b"theirs"
    left = {victim} | ({path} if before in ("file", "fifo", "folder") else set())
    assert set(tmp_path.iterdir()) == left


def test_a_folder_open_to_others_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes it first, in /tmp say, keeps nobody from starting a proxy."""
    home, temporary, runtime = (tmp_path / name for name in ("home", "tmp", "run"))
    for each in (home, temporary, runtime):
        each.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(temporary))
    taken = [
        runtime / "kafkascope",
        temporary / f"kafkascope-{os.getuid()}",
        home / ".kafkascope" / "run",
    ]
    for folder in taken:
        assert runtime_folder() == folder
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        folder.chmod(0o777)
    with pytest.raises(OSError, match="other users can access"):
        runtime_folder()
    taken[1].rmdir()
    taken[1].symlink_to(tmp_path)
    taken[2].chmod(0o700)
    assert runtime_folder() == taken[2]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to another user")
async def test_a_folder_that_another_user_made_first_leads_to_another_place(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Private as it is: sockets in it could be replaced by its owner."""
    short = TemporaryDirectory()  # the path of a socket has 107 bytes at most
    request.addfinalizer(short.cleanup)
    home, temporary = Path(short.name) / "home", Path(short.name) / "tmp"
    home.mkdir()
    folder = temporary / f"kafkascope-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True)
    os.chown(folder, 12_345, 12_345)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(temporary))

    async with KafkaProxy("127.0.0.1:1") as made:
        control = Control(made)
        await control.listen(socket_path())
        assert control.path == home / ".kafkascope" / "run" / f"proxy-{os.getpid()}.sock"
        assert running() == {os.getpid(): control.path}
        await control.close()
    assert not list(folder.iterdir())
    assert folder.stat().st_uid == 12_345


async def scraped(request: bytes, *hosts: str) -> bytes:
    """The answer to a request of HTTP."""
    async with proxied() as made:
        exposition = Exposition(made, hosts)
        await exposition.listen(Address("127.0.0.1", 0))
        client = await kit.Link.to(f"127.0.0.1:{exposition.port}")
        client.send(request)
        told = await client.rest()
        await client.leave()
        await exposition.close()
        return told


NAMED = [b"Accept: */*\r\nHost: metrics.internal:80", b"Host: Metrics.Internal"]
SERVED = [*LOOPBACK, *NAMED]


@pytest.mark.parametrize("headers", [*SERVED, *BENT])
@pytest.mark.parametrize("protocol", [b"HTTP/1.1", b"HTTP/1.0"])
async def test_only_hosts_of_ours_get_the_metrics(headers: bytes, protocol: bytes) -> None:
    request = b"GET /metrics " + protocol + b"\r\n" + headers + b"\r\n\r\n"
    told = await scraped(request, "Metrics.internal")
    assert (b"kafkascope_connections " in told) == (headers in SERVED)
    assert told.split()[1] in ((b"200",) if headers in SERVED else (b"400", b"403"))


def test_other_urls_and_those_that_name_a_host_get_no_metrics() -> None:
    exposition = Exposition(KafkaProxy("127.0.0.1:1"))
    for url in (b"/", b"http://evil.example/metrics", b"http://localhost/metrics"):
        told = exposition.respond(b"GET " + url + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", "::1")
        assert told.split()[1] == b"404"


@pytest.mark.parametrize(
    ("came_to", "host", "served"),
    [
        ("10.0.0.7", "10.0.0.7:9400", True),
        ("10.0.0.7", "10.0.0.8", False),
        ("::ffff:10.0.0.7", "10.0.0.7", True),
        ("fe80::1%eth0", "[fe80::1]:9400", True),
        ("2001:db8::1", "[2001:DB8:0::1]", True),
        ("2001:db8::1", "[2001:db8::2]", False),
        ("10.0.0.7", "10.0.0.7.evil.example", False),
    ],
)
def test_the_address_that_a_request_came_to_is_ours(came_to: str, host: str, served: bool) -> None:
    exposition = Exposition(KafkaProxy("127.0.0.1:1"))
    request = f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    assert (b" 200 " in exposition.respond(request, came_to)) == served


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--upstream"),
        (["--upstream", "b", "--metrics-host", "x"], "--metrics-host needs --metrics"),
        (["--upstream", "b", "--metrics", ":1", "--metrics-host", "a\tb"], "is not a host name"),
        (["--upstream", "b", "-w", "f", "--keep-bytes", "1GB"], "needs --rotate-bytes"),
        (["--upstream", "b", "--port-base", "70000"], "not in the range"),
        (["--upstream", "b", "--rotate-time", "10m"], "needs -w FILE"),
        (["--upstream", "b", "-w", "f", "--rotate-time", "60"], "write 60s"),
        (["--upstream", "b", "--tls", "--tls-key", __file__], "needs --tls-cert"),
        (["--upstream", "b", "--listen", "0.0.0.0:1"], "--expose"),
        (["--upstream", "b", "--listen", "0:1"], "--expose"),
        (["--upstream", "b", "--listen", "[::ffff:0.0.0.0]:1"], "--expose"),
        (["--upstream", "b", "--metrics", "0x0:1"], "--expose"),
        (["--upstream", "b", "--listen", "x:y"], "no port"),
        (["--upstream", "b", "--fault", "api == Fetch -> dorp"], "did you mean 'drop'"),
        (["--upstream", "b", "--hold", "api = = 5"], "filter"),
        (["--upstream", "b", "--control", "-"], "--quiet"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments: list[str], sentence: str) -> None:
    done = CliRunner().invoke(proxy, arguments)
    assert done.exit_code == 2
    assert sentence in done.output


def test_the_grammar_of_faults_names_every_action() -> None:
    done = CliRunner().invoke(proxy, ["--help-faults"])
    assert done.exit_code == 0
    words = " ".join(done.output.split())
    assert all(action.usage in words and action.doc in words for action in FAULTS.values())
    assert max(map(len, done.output.splitlines())) <= 80


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("b:1", ("b", 1)),
        (":1", ("127.0.0.1", 1)),
        ("b", ("b", 9092)),
        ("[::1]:5", ("::1", 5)),
        ("::1", ("::1", 9092)),
        ("PLAINTEXT://b:1", ("b", 1)),
        ("SASL_SSL://[::1]:5", ("::1", 5)),
        (" my-listener.2://b ", ("b", 9092)),
        ("://b:1", ("b", 1)),
    ],
)
def test_addresses_as_people_write_them(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


def test_a_port_alone_is_no_address() -> None:
    with pytest.raises(ValueError, match="write :19092"):
        parse_address("19092")


@pytest.mark.parametrize(
    "words",
    [
        ("proxy", "--upstream", "a..b:1"),
        ("serve", SAMPLE, "--listen", "a..b:1"),
        ("replay", SAMPLE, "--to", "a..b:1"),
    ],
    ids=lambda words: words[0],
)
def test_what_is_no_name_of_a_host_is_wrong_usage(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == 2
    assert "a..b:1" in done.output


def test_help_loads_no_engine() -> None:
    code = (
        "import sys; from kafkascope.tui.cli import main\n"
        "try: main(['proxy', '--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('mitmproxy', 'scapy', 'OpenSSL')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr


TRANSPARENT = """
import asyncio, sys
from kafkascope.proxy import KafkaProxy
async def main():
    async with KafkaProxy(mode="transparent", listen="127.0.0.1:19092") as p:
        print("ready", flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""
AS_PROXY = 'import os; os.setgid(12345); exec(open("/dev/fd/3").read())'
BROKER = """
import asyncio
from tests.kit import proxy as kit
from tests.kit.proxy import beat, proxied, pulse, until
async def main():
    async def serve(r, w):
        while True:
            asked = await read_frame(r)
            w.write(response(3, 12, {"brokers": [endpoint(1)]}, correlation_id=1))
    async with await asyncio.start_server(serve, "10.77.0.1", 9092) as server:
        print("ready", flush=True)
        await server.serve_forever()
asyncio.run(main())
"""
CLIENT = """
import asyncio
from tests.kit import proxy as kit
from tests.kit.proxy import beat, proxied, pulse, until
async def main():
    print((await ask("10.77.0.1:9092", request(3, 12))).hex())
asyncio.run(main())
"""


@pytest.mark.skipif(
    shutil.which("iptables") is None or shutil.which("unshare") is None, reason="needs iptables"
)
def test_transparent_mode_in_a_network_namespace() -> None:
    """Clients connect to the broker's address; the kernel sends them to us; nothing is replaced."""
    script = f"""
set -e
ready() {{
    for _ in $(seq 600); do (echo > /dev/tcp/$1/$2) 2>/dev/null && return; sleep 0.1; done
    exit 1
}}
trap 'kill $(jobs -p)' EXIT
ip link set lo up
ip addr add 10.77.0.1/32 dev lo
{sys.executable} -c '{BROKER}' >&2 &
ready 10.77.0.1 9092
iptables -t nat -A OUTPUT -p tcp --dport 9092 -m owner ! --gid-owner 12345 \\
    -j REDIRECT --to-ports 19092
{sys.executable} -c '{AS_PROXY}' 3<<'END' >&2 &
{TRANSPARENT}
END
ready 127.0.0.1 19092
{sys.executable} -c '{CLIENT}'
"""
    done = subprocess.run(
        ["unshare", "-n", "bash", "-c", script], capture_output=True, text=True, timeout=300
    )
    if "Operation not permitted" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip("needs the right to make network namespaces")
    if "iptables" in done.stderr and done.returncode:
        pytest.skip(f"iptables does not work here: {done.stderr[-200:]}")
    assert b"10.9.8.7" in bytes.fromhex(done.stdout.split()[-1]), done.stderr


def test_a_parent_may_give_sockets_as_stdin_and_stdout() -> None:
    """Node makes sockets of what others make pipes of."""
    words = ("--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--quiet", "--control", "-")
    program = [sys.executable, "-m", "kafkascope", "proxy", *words]
    ours, theirs = socket.socketpair()
    with subprocess.Popen(program, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE) as child:
        theirs.close()
        ours.sendall(b'{"do":"status","id":7}\n')
        with ours, ours.makefile() as lines:
            answer = json.loads(lines.readline())
            ours.shutdown(socket.SHUT_WR)
            rest = lines.read()
        said = child.stderr.read().decode()
    assert (answer["id"], answer["pid"], rest) == (7, child.pid, "")
    assert answer["bootstrap"] in said
    assert child.returncode == 0, said
    assert "Traceback" not in said
