"""The extcap program with tshark and dumpcap: listed, asked, captured from, stopped."""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kafkascope.bridges.wireshark import folders
from kafkascope.bridges.wireshark.protocol import LIVE, PROXY
from tests.kit.run import run
from tests.kit.samples import SAMPLES

pytestmark = [
    pytest.mark.tshark,
    pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed"),
]

SAMPLE = SAMPLES / "librdkafka.pcap"
PATIENCE_S = 60.0
BIND = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program that `install` writes."""
    place = tmp_path_factory.mktemp("extcap")
    done = run("integrations", "wireshark", "install", "--folder", place)
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{place / 'kafkascope'}\n"
    return place


def tshark(folder: Path, *args: str | Path) -> tuple[list[str], dict[str, str]]:
    """A command line and environment of a tshark that looks into this folder only. It does not
    believe the environment of root: there the folder is mounted in place of the one of all."""
    command = ["tshark", *map(str, args)]
    environment = {**os.environ, "WIRESHARK_EXTCAP_DIR": str(folder)}
    if os.geteuid() == 0:
        shared = folders.ask_tshark().shared
        if shared is None or not shared.is_dir():
            pytest.skip(f"there is no folder {shared} to mount over")
        command = ["unshare", "--mount", "sh", "-c", BIND, "sh", str(folder), str(shared), *command]
        probe = subprocess.run([*command[: -len(args)], "--version"], capture_output=True)
        if probe.returncode:
            pytest.skip("mounts need a right that is not there")
    return command, environment


def printed(folder: Path, *args: str | Path) -> list[str]:
    command, environment = tshark(folder, *args)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_tshark_lists_the_interfaces(folder: Path) -> None:
    names = [line.partition(" ")[2] for line in printed(folder, "-D")]
    assert f"{PROXY} (Kafka proxy)" in names
    assert f"{LIVE} (Kafka live capture)" in names


@pytest.mark.slow
@pytest.mark.parametrize("interface", [PROXY, LIVE])
def test_tshark_knows_link_type_and_options(folder: Path, interface: str) -> None:
    assert "  EN10MB (Ethernet)" in printed(folder, "-L", "-i", interface)
    preferences = printed(folder, "-G", "currentprefs")
    begin = f"#extcap.{interface.replace('-', '_')}."
    names = {line.partition(":")[0] for line in preferences if line.startswith(begin)}
    wanted = {PROXY: "upstream", LIVE: "ports"}[interface]
    assert f"{begin}{wanted}" in names


@pytest.fixture(scope="module")
def broker() -> Iterator[int]:
    """The port of a capture as a broker."""
    command = [sys.executable, "-m", "kafkascope", "serve", SAMPLE, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as served:
        line = served.stdout.readline().decode()
        yield int(line.strip().rpartition(":")[2])
        served.send_signal(signal.SIGINT)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def ask(port: int, client: bytes, tls: bool = False) -> bytes:
    """The answer to ApiVersions 0, as soon as somebody listens."""
    wrap = ssl._create_unverified_context().wrap_socket if tls else closing
    request = bytes([0, 18, 0, 0, 0, 0, 0, 7, 0, len(client)]) + client
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            with wrap(socket.create_connection(("127.0.0.1", port), 5)) as link:
                link.sendall(len(request).to_bytes(4, "big") + request)
                if answer := link.recv(65536):
                    return answer
        except OSError:
            pass
        assert time.monotonic() < until
        time.sleep(0.1)


@contextmanager
def capturing(folder: Path, out: Path, interface: str, more: dict[str, str]) -> Iterator[None]:
    """Capture with tshark and dumpcap until the end of the block, as ctrl+c ends it."""
    preference = f"extcap.{interface.replace('-', '_')}"
    options = [
        word for key, value in more.items() for word in ("-o", f"{preference}.{key}:{value}")
    ]
    command, environment = tshark(folder, "-i", interface, *options, "-w", out)
    with (out.parent / "tshark.log").open("wb") as log:
        capture = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        until = time.monotonic() + PATIENCE_S
        while not out.exists():
            assert capture.poll() is None, (out.parent / "tshark.log").read_text()
            assert time.monotonic() < until
            time.sleep(0.05)
        yield
    finally:
        capture.send_signal(signal.SIGINT)
        capture.wait(PATIENCE_S)
    none_left(
        {PROXY: f"--listen={more.get('listen')}", LIVE: f"(port {more.get('ports')})"}[interface]
    )


def none_left(word: str) -> None:
    """Wait until no process has a word in its command line."""
    until = time.monotonic() + PATIENCE_S
    while found := children(word):
        assert time.monotonic() < until, found
        time.sleep(0.1)


def children(word: str) -> list[str]:
    """Command lines of processes that hold a word."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line:
            found.append(line)
    return found


def listed(path: Path) -> list[tuple[str, str | None]]:
    lines = run("ls", path, "--json").stdout.splitlines()
    return [(each["client_id"], each["response_bytes"]) for each in map(json.loads, lines)]


def wait_for(path: Path, client: str) -> list[tuple[str, str | None]]:
    """The exchanges of a file that grows, when that client's is whole."""
    until = time.monotonic() + PATIENCE_S
    while True:
        found = listed(path)
        if any(name == client and size for name, size in found):
            return found
        assert time.monotonic() < until, found
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_tshark_captures_from_the_proxy(
    folder: Path, broker: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: bool
) -> None:
    """What clients say in TLS is there in plain, and decoded by Wireshark itself."""
    monkeypatch.setenv("HOME", str(tmp_path))
    out = tmp_path / "out.pcapng"
    port = free_port()
    told = {"upstream": f"127.0.0.1:{broker}", "listen": f"127.0.0.1:{port}"}
    if tls:
        told["tls"] = "true"
    with capturing(folder, out, PROXY, told):
        assert len(ask(port, b"through-the-proxy", tls)) > 20
        assert children(f"--listen=127.0.0.1:{port}")
        wait_for(out, "through-the-proxy")
    fields = ("-Y", "kafka", "-T", "fields", "-e", "kafka.client_id")
    decoded = printed(folder, "-r", out, "-d", f"tcp.port=={broker},kafka", *fields)
    assert "through-the-proxy" in decoded
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 5)


def can_capture() -> bool:
    command = ["dumpcap", "-i", "lo", "-a", "duration:0", "-w", "/dev/null"]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not can_capture(), reason="needs the right to capture")
def test_tshark_captures_live(folder: Path, broker: int, tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    with capturing(folder, out, LIVE, {"interface": "lo", "ports": str(broker)}):
        until = time.monotonic() + PATIENCE_S
        while not listed(out):
            assert time.monotonic() < until
            ask(broker, b"on-the-wire")
        found = wait_for(out, "on-the-wire")
        assert children(f"(port {broker})")
    assert {name for name, _ in found} == {"on-the-wire"}


@pytest.fixture
def encrypted(
    broker: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[int, ssl.SSLContext]]:
    """The port of a server that puts TLS before the broker, and a client for it."""
    folder = tmp_path_factory.mktemp("tls")
    pem = folder / "own.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", "/CN=localhost", "-keyout", pem, "-out", f"{pem}.crt"),
        ],
        check=True,
        capture_output=True,
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(f"{pem}.crt", pem)
    client = ssl.create_default_context(cafile=f"{pem}.crt")
    client.check_hostname = False
    client.keylog_filename = str(folder / "keys.log")

    def serve(link: socket.socket) -> None:
        with (
            closing(server.wrap_socket(link, server_side=True)) as inside,
            closing(socket.create_connection(("127.0.0.1", broker))) as outside,
        ):
            while data := inside.recv(65536):
                outside.sendall(data)
                inside.sendall(outside.recv(65536))

    def accept() -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(link,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1], client
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.slow
@pytest.mark.skipif(
    not (can_capture() and shutil.which("openssl")), reason="needs openssl, and a right to capture"
)
@pytest.mark.parametrize(
    ("newest", "given"),
    [
        (ssl.TLSVersion.TLSv1_2, True),
        (ssl.TLSVersion.TLSv1_3, True),
        (ssl.TLSVersion.TLSv1_3, False),
    ],
    ids=["1.2", "1.3", "no-key-log"],
)
def test_a_live_capture_carries_the_secrets_of_its_key_log(
    folder: Path,
    encrypted: tuple[int, ssl.SSLContext],
    tmp_path: Path,
    newest: ssl.TLSVersion,
    given: bool,
) -> None:
    """tshark decrypts it without being told a key log, while clients come and go."""
    port, client = encrypted
    client.maximum_version = newest
    log = Path(client.keylog_filename)
    log.write_bytes(b"")
    out = tmp_path / "out.pcapng"
    options = {"interface": "lo", "ports": str(port)} | ({"keylog": str(log)} if given else {})
    names = [f"client-{number}" for number in range(4)]
    with capturing(folder, out, LIVE, options):
        until = time.monotonic() + PATIENCE_S
        ready = False
        while not ready:  # what captures may need a moment
            assert time.monotonic() < until
            ask_inside(port, client, "first")
            ready = out.stat().st_size > 2000
        for name in names:
            ask_inside(port, client, name)
            time.sleep(0.3)
        size = -1
        while size != (size := out.stat().st_size):
            time.sleep(2)
    fields = ["-T", "fields", "-e", "kafka.client_id"]
    decode = ["-d", f"tcp.port=={port},tls", "-d", f"tls.port=={port},kafka"]
    decoded = printed(folder, "-r", out, *decode, "-Y", "kafka", *fields)
    shown = [name for name in decoded if name and name != "first"]
    assert shown == [name for name in names if given for _ in range(3)]
    assert (b"CLIENT_RANDOM" in out.read_bytes() or b"TRAFFIC" in out.read_bytes()) is given
    if given:
        # To the question and its answer alike.
        assert len([name for name in decoded if not name]) >= 3 * len(names)


def ask_inside(port: int, client: ssl.SSLContext, name: str) -> None:
    """Three requests over a connection with TLS."""
    request = bytes([0, 18, 0, 0, 0, 0, 0, 7, 0, len(name)]) + name.encode()
    with client.wrap_socket(socket.create_connection(("127.0.0.1", port), 5)) as link:
        for _ in range(3):
            link.sendall(len(request).to_bytes(4, "big") + request)
            assert link.recv(65536)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("interface", "said"), [(PROXY, "Broker is missing"), (LIVE, "cannot capture on no-such")]
)
def test_tshark_tells_what_is_wrong(
    folder: Path, tmp_path: Path, interface: str, said: str
) -> None:
    options = {PROXY: (), LIVE: ("-o", "extcap.kafkascope_live.interface:no-such")}[interface]
    out = tmp_path / "out.pcapng"
    command, environment = tshark(folder, "-i", interface, *options, "-w", out)
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode
    assert said in done.stderr


@pytest.mark.parametrize("killed", [False, True])
def test_it_ends_with_the_reader(folder: Path, broker: int, tmp_path: Path, killed: bool) -> None:
    """Whoever reads the pipe may be killed, and it may be killed itself: nothing of ours stays."""
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    port = free_port()
    options = ["--upstream", f"127.0.0.1:{broker}", "--listen", f"127.0.0.1:{port}"]
    command = [folder / "kafkascope", "--extcap-interface", PROXY, "--capture", "--fifo", fifo]
    with subprocess.Popen([*command, *options]) as program:
        with fifo.open("rb") as reader:
            assert reader.read(4) == b"\x0a\x0d\x0d\x0a"
            assert ask(port, b"x")
            if killed:
                program.kill()
                program.wait(PATIENCE_S)
                none_left(f"--listen=127.0.0.1:{port}")
        assert killed or program.wait(PATIENCE_S) == 0
    none_left(f"--listen=127.0.0.1:{port}")


def test_installed_and_uninstalled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    done = run("integrations", "wireshark", "install")
    assert done.exit_code == 0
    path = Path(done.stdout.strip())
    assert path == (folders.ask_tshark().personal or folders.default_folder()) / "kafkascope"
    assert tmp_path in path.parents
    version = subprocess.run([path, "--extcap-interfaces"], capture_output=True, text=True)
    assert version.stdout.startswith("extcap {version=")
    if folders.ask_tshark().personal is None:
        assert f"WIRESHARK_EXTCAP_DIR={path.parent}" in done.stderr
    assert run("integrations", "wireshark", "uninstall").stdout == f"{path}\n"
    assert not path.exists()
    assert "nothing to remove" in run("integrations", "wireshark", "uninstall").stderr
