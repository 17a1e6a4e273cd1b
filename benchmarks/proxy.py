"""What the proxy costs: speed, latency, CPU and memory, beside nothing and beside other relays.

    python benchmarks/proxy.py                   frames over loopback (about two minutes)
    python benchmarks/proxy.py --real            ProducerPerformance and ConsumerPerformance
    python benchmarks/proxy.py --soak            10 GB, for the memory

Every round runs all variants one after the other, so that a busy machine hurts all alike; printed
are medians. Ratios and CPU seconds per GB are what to look at, not MB/s. Load generator and server
are processes of their own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve()
ROOT = HERE.parent.parent
SIZE = struct.Struct(">i")
PRODUCE_HEAD = struct.Struct(">hhih5sBBh")  # v9: key, version, id, client id, tags, txn, acks
FRAME_BYTES = 64 * 1024
ANSWER_BYTES = 512 * 1024
TICKS = os.sysconf("SC_CLK_TCK")


# --- the far end: answers Produce with little, Fetch with much, ApiVersions with 64 bytes


def serve(port_file: str) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        Path(port_file).write_text(str(server.getsockname()[1]))
        while True:
            connection, _ = server.accept()
            threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A Fetch v12 answer: one topic, one partition, records, no tags.
    records = bytes(ANSWER_BYTES)
    body = struct.pack(
        ">BihiB2sBBihqqqBiBBBB", 0, 0, 0, 0, 2, b"\x02t", 2, 0, 0, 0, 1, 1, 0, 0, -1, 0, 0, 0, 0
    )
    fetch = body[:-4] + b"\xff\xff\x1f" + records[: 0x7FFFF - 1 - 16] + bytes(3)
    buffer = bytearray(1 << 20)
    view = memoryview(buffer)
    have = 0
    with connection, contextlib.suppress(OSError):
        while True:
            got = connection.recv_into(view[have:])
            if not got:
                return
            have += got
            at = 0
            while have - at >= 12:
                (size,) = SIZE.unpack_from(buffer, at)
                if have - at < size + 4:
                    break
                key, correlation = buffer[at + 5], bytes(buffer[at + 8 : at + 12])
                if key == 0:
                    connection.sendall(SIZE.pack(44) + correlation + bytes(40))
                elif key == 1:
                    connection.sendall(SIZE.pack(4 + len(fetch)) + correlation + fetch)
                else:
                    connection.sendall(SIZE.pack(64) + correlation + bytes(60))
                at += size + 4
            view[: have - at] = view[at:have]
            have -= at


# --- the near end, a process for each measurement


def load(kind: str, port: int, amount: int) -> None:
    """Print seconds (produce, fetch) or sorted microseconds p50 and p99 (ping)."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if kind == "produce":
            _produce(connection, amount)
        elif kind == "fetch":
            _fetch(connection, amount)
        else:
            _ping(connection, amount)


def _frame(key: int, version: int, correlation: int, rest: bytes) -> bytes:
    payload = struct.pack(">hhih5s", key, version, correlation, 5, b"bench") + rest
    return SIZE.pack(len(payload)) + payload


def _produce(connection: socket.socket, amount: int) -> None:
    count = max(1, amount // FRAME_BYTES)
    frame = _frame(0, 9, 7, b"\0\0\xff\xff" + bytes(FRAME_BYTES - 40))
    begin = time.perf_counter()

    def send() -> None:
        for _ in range(count):
            connection.sendall(frame)

    sender = threading.Thread(target=send)
    sender.start()
    left = count * 48
    while left:
        left -= len(connection.recv(1 << 16))
    sender.join()
    print(time.perf_counter() - begin)


def _fetch(connection: socket.socket, amount: int) -> None:
    request = _frame(1, 12, 7, bytes(50))
    buffer = bytearray(1 << 20)
    got = 0
    begin = time.perf_counter()
    connection.sendall(request)
    while got < amount:
        connection.sendall(request)
        size = SIZE.unpack(connection.recv(4, socket.MSG_WAITALL))[0]
        got += size
        while size:
            size -= connection.recv_into(buffer, min(size, len(buffer)))
    print((time.perf_counter() - begin) * amount / got)


def _ping(connection: socket.socket, amount: int) -> None:
    request = _frame(18, 0, 7, b"")
    times = []
    for turn in range(amount + 200):
        begin = time.perf_counter_ns()
        connection.sendall(request)
        left = 68
        while left:
            left -= len(connection.recv(left))
        if turn >= 200:
            times.append(time.perf_counter_ns() - begin)
    times.sort()
    print(times[len(times) // 2] / 1000, times[int(len(times) * 0.99)] / 1000)


# --- relays


def asyncio_relay(upstream: int, port_file: str, port: int = 0) -> None:
    """The yardstick: what asyncio itself costs, with back pressure and nothing else."""
    import asyncio

    class Half(asyncio.Protocol):
        peer: Half | None = None

        def __init__(self, accepted: bool) -> None:
            self.accepted = accepted

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport: asyncio.Transport = transport  # type: ignore[assignment]
            if self.accepted:
                self.transport.pause_reading()
                self.task = asyncio.ensure_future(self.connect())

        async def connect(self) -> None:
            loop = asyncio.get_running_loop()
            _, other = await loop.create_connection(lambda: Half(False), "127.0.0.1", upstream)
            self.peer, other.peer = other, self
            self.transport.resume_reading()

        def data_received(self, data: bytes) -> None:
            assert self.peer is not None
            self.peer.transport.write(data)

        def pause_writing(self) -> None:
            if self.peer is not None:
                self.peer.transport.pause_reading()

        def resume_writing(self) -> None:
            if self.peer is not None:
                self.peer.transport.resume_reading()

        def connection_lost(self, exc: Exception | None) -> None:
            if self.peer is not None:
                self.peer.transport.close()

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(
            lambda: Half(True), "127.0.0.1", port
        )
        Path(port_file).write_text(str(server.sockets[0].getsockname()[1]))
        await server.serve_forever()

    asyncio.run(main())


NO_OP = "class Nothing:\n    def tcp_message(self, flow):\n        pass\n\naddons = [Nothing()]\n"


class Running:
    """A relay process: `port`, CPU seconds and memory."""

    def __init__(self, name: str, command: list[str], port_file: Path, port: int = 0) -> None:
        self.name = name
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        self.port = port or port_of(port_file, self.process)
        end = time.monotonic() + 30
        while port and time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mb(self, what: str = "VmRSS") -> float:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(what):
                return int(line.split()[1]) / 1024
        return 0.0

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def port_of(file: Path, process: subprocess.Popen[bytes]) -> int:
    end = time.monotonic() + 30
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError, ValueError):
            return int(file.read_text())
        time.sleep(0.02)
    raise SystemExit(f"{process.args} did not start")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


VARIANTS = ("direct", "asyncio relay", "kafkascope", "kafkascope, recording", "kafkascope, a rule")


def start(name: str, upstream: int, folder: Path) -> Running:
    """Start a relay before the port `upstream`."""
    port_file = folder / f"port-{name.replace(' ', '-')}"
    python = sys.executable
    if name == "asyncio relay":
        command = [python, str(HERE), "--as", "relay", str(upstream), str(port_file)]
        return Running(name, command, port_file)
    if name == "mitmdump":
        script = folder / "nothing.py"
        script.write_text(NO_OP)
        port = _free_port()
        tool = str(Path(python).with_name("mitmdump"))
        mode = f"reverse:tcp://127.0.0.1:{upstream}@127.0.0.1:{port}"
        confdir = f"confdir={folder / 'mitmproxy'}"
        return Running(
            name, [tool, "-q", "--set", confdir, "--mode", mode, "-s", str(script)], port_file, port
        )
    port = _free_port()
    command = [python, "-m", "tui.cli", "proxy", "--upstream", f"127.0.0.1:{upstream}"]
    command += ["--listen", f"127.0.0.1:{port}", "--quiet"]
    if "recording" in name:
        command += [
            "-w",
            str(folder / "bench.pcapng"),
            "--rotate-bytes",
            "256MB",
            "--keep-bytes",
            "512MB",
        ]
    if "rule" in name:
        command += ["--fault", "api == Metadata and topic == nothing -> delay 1ms"]
    return Running(name, command, port_file, port)


def measure(kind: str, port: int, amount: int) -> list[float]:
    done = subprocess.run(
        [sys.executable, str(HERE), "--as", "load", kind, str(port), str(amount)],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return [float(word) for word in done.stdout.split()]


@contextlib.contextmanager
def far_end(folder: Path) -> Iterator[int]:
    port_file = folder / "port-server"
    process = subprocess.Popen([sys.executable, str(HERE), "--as", "server", str(port_file)])
    try:
        yield port_of(port_file, process)
    finally:
        process.kill()
        process.wait()


def frames(rounds: int, amount: int, names: list[str]) -> None:
    """Bulk both ways and round trips, through every relay."""
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    results: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    with far_end(folder) as upstream:
        relays = {n: start(n, upstream, folder) for n in names if n != "direct"}
        try:
            for turn in range(rounds + 1):
                for name in names:
                    relay = relays.get(name)
                    port = relay.port if relay else upstream
                    for kind in ("produce", "fetch", "ping"):
                        before = relay.cpu_s() if relay else 0.0
                        told = measure(kind, port, 3000 if kind == "ping" else amount)
                        if turn == 0:
                            continue  # warm-up
                        row = results[name]
                        if kind == "ping":
                            row.setdefault("p50", []).append(told[0])
                            row.setdefault("p99", []).append(told[1])
                        else:
                            row.setdefault(kind, []).append(amount / told[0] / 1e6)
                            cpu = (relay.cpu_s() - before) / (amount / 1e9) if relay else 0.0
                            row.setdefault(f"{kind} cpu", []).append(cpu)
            memory = {name: relay.memory_mb("VmHWM") for name, relay in relays.items()}
        finally:
            for relay in relays.values():
                relay.stop()
            shutil.rmtree(folder, ignore_errors=True)
    report(results, memory)


def report(results: dict[str, dict[str, list[float]]], memory: dict[str, float]) -> None:
    head = f"{'':26}{'produce MB/s':>13}{'of relay':>9}{'CPU s/GB':>9}"
    head += f"{'fetch MB/s':>12}{'of relay':>9}"
    print(head + f"{'CPU s/GB':>9}{'p50 us':>8}{'added':>7}{'p99 us':>8}{'peak MB':>8}")

    def median(name: str, what: str) -> float:
        return statistics.median(results[name][what])

    def ratio(name: str, what: str) -> float:
        pairs = zip(results[name][what], results["asyncio relay"][what], strict=True)
        return statistics.median(ours / theirs for ours, theirs in pairs)

    for name in results:
        line = f"{name:26}"
        for kind in ("produce", "fetch"):
            line += f"{median(name, kind):{13 if kind == 'produce' else 12}.0f}"
            line += f"{ratio(name, kind):9.2f}{median(name, f'{kind} cpu'):9.2f}"
        added = median(name, "p50") - median("direct", "p50")
        line += f"{median(name, 'p50'):8.0f}{added:7.0f}{median(name, 'p99'):8.0f}"
        print(line + f"{memory.get(name, 0):8.0f}")


def soak(amount: int) -> None:
    """Memory while 10 GB pass, plain and recording."""
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    with far_end(folder) as upstream:
        for name in ("kafkascope", "kafkascope, recording"):
            relay = start(name, upstream, folder)
            try:
                measure("fetch", relay.port, amount // 20)
                before = relay.memory_mb()
                for kind in ("produce", "fetch"):
                    measure(kind, relay.port, amount // 2)
                grown = relay.memory_mb("VmHWM") - before
                print(
                    f"{name}: {amount / 1e9:.0f} GB, memory {before:.0f} MB, "
                    f"grew by {grown:.1f} MB at most"
                )
            finally:
                relay.stop()
    shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    if sys.argv[1:2] == ["--as"]:
        what, *rest = sys.argv[2:]
        if what == "server":
            serve(rest[0])
        elif what == "relay":
            asyncio_relay(int(rest[0]), rest[1], *map(int, rest[2:]))
        else:
            load(rest[0], int(rest[1]), int(rest[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bytes", type=float, default=5e8)
    parser.add_argument("--only", help="comma separated variants")
    parser.add_argument("--mitmdump", action="store_true", help="also mitmdump with a no-op add-on")
    parser.add_argument("--soak", action="store_true")
    parser.add_argument("--real", action="store_true")
    given = parser.parse_args()
    if given.soak:
        soak(int(1e10))
        return
    if given.real:
        sys.path.insert(0, str(ROOT))
        from benchmarks import proxy_real

        proxy_real.run(given.rounds, sys.modules[__name__])
        return
    names = list(VARIANTS) + (["mitmdump"] if given.mitmdump else [])
    if given.only:
        names = [n for n in names if n in given.only.split(";")]
    frames(given.rounds, int(given.bytes), names)


if __name__ == "__main__":
    main()
