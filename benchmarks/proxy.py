"""What the proxy costs: speed, latency, CPU and memory, beside nothing and beside other relays.

    python benchmarks/proxy.py                   frames over loopback (some minutes)
    python benchmarks/proxy.py --real            ProducerPerformance and ConsumerPerformance
    python benchmarks/proxy.py --soak            10 GB, for the memory

Every round runs all variants one after the other, so that a busy machine hurts all alike; printed
are medians. Rivals (benchmarks/rivals.py) that cannot be had are left out with a reason; where that
is allowed, all runs in a network namespace of its own. Ratios and CPU seconds per GB are what to
look at, not MB/s. Load generator and server are processes of their own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve()
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.rivals import (  # noqa: E402
    INSIDE,
    RIVALS,
    Missing,
    enter_namespace,
    free_port,
    prepare,
)

SIZE = struct.Struct(">i")
PRODUCE_HEAD = struct.Struct(">hhih5sBBh")  # v9: key, version, id, client id, tags, txn, acks
FRAME_BYTES = 64 * 1024
ANSWER_BYTES = 500_000
# Produce v9's answer behind the correlation id: one topic, one partition, no error.
PRODUCED = b"\0\x02\x02t\x02" + struct.pack(">ihqqq", 0, 0, 1, -1, 0) + b"\x01\0\0\0" + bytes(5)
HEARTBEAT = struct.pack(">h5sih9sh", 5, b"group", 7, 9, b"member-id", -1)
TICKS = os.sysconf("SC_CLK_TCK")


def sized(count: int) -> bytes:
    """So many bytes of records, behind their length (a varint of three bytes, plus one)."""
    size = count + 1
    return bytes((size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14)) + bytes(count)


# --- the far end: answers Produce with little, Fetch with much, Heartbeat with 14 bytes


def serve(port_file: str) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        Path(port_file).write_text(str(server.getsockname()[1]))
        while True:
            connection, _ = server.accept()
            threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A Fetch v12 answer: one topic, one partition, records.
    fetch = struct.pack(">Bihi", 0, 0, 0, 0) + b"\x02\x02t\x02"
    fetch += struct.pack(">ihqqqBi", 0, 0, 1, 1, 0, 0, -1) + sized(ANSWER_BYTES) + bytes(3)
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
                    connection.sendall(SIZE.pack(4 + len(PRODUCED)) + correlation + PRODUCED)
                elif key == 1:
                    connection.sendall(SIZE.pack(4 + len(fetch)) + correlation + fetch)
                else:
                    connection.sendall(SIZE.pack(10) + correlation + bytes(6))
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
    head = b"\0\0\xff\xff" + struct.pack(">i", 30_000) + b"\x02\x02t\x02" + bytes(4)
    frame = _frame(0, 9, 7, head + sized(FRAME_BYTES - 60) + bytes(3))
    begin = time.perf_counter()

    def send() -> None:
        for _ in range(count):
            connection.sendall(frame)

    sender = threading.Thread(target=send)
    sender.start()
    left = count * (8 + len(PRODUCED))
    while left:
        left -= len(connection.recv(1 << 16))
    sender.join()
    print(time.perf_counter() - begin)


def _fetch(connection: socket.socket, amount: int) -> None:
    # Fetch v12 of one partition.
    body = struct.pack(">BiiiiBii", 0, -1, 500, 1, 1 << 30, 0, 0, -1) + b"\x02\x02t\x02"
    body += struct.pack(">iiqiqi", 0, -1, 0, -1, -1, 1 << 20) + b"\0\0\x01\x01\0"
    request = _frame(1, 12, 7, body)
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
    request = _frame(12, 3, 7, HEARTBEAT)  # Heartbeat: small, frequent, nothing to change
    times = []
    for turn in range(amount + 200):
        begin = time.perf_counter_ns()
        connection.sendall(request)
        left = 14
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


class Running:
    """A relay process: `port`, CPU seconds and memory."""

    def __init__(self, name: str, command: list[str], port_file: Path, port: int = 0) -> None:
        self.name = name
        self.version = ""
        self.said = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=self.said
        )
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

    def left_out(self) -> str:
        """What our proxy said about packets that it could not record."""
        lines = self.last_words().splitlines()
        return "; ".join(line for line in lines if "left out" in line)

    def last_words(self) -> str:
        """The end of what the process said."""
        self.said.seek(0)
        return self.said.read().decode(errors="replace")[:6000]


def port_of(file: Path, process: subprocess.Popen[bytes]) -> int:
    end = time.monotonic() + 30
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError, ValueError):
            return int(file.read_text())
        time.sleep(0.02)
    raise SystemExit(f"{process.args!r} did not start")


OURS = ("kafkascope", "kafkascope, recording", "kafkascope, a rule")
VARIANTS = ("direct", "asyncio relay", *OURS, *RIVALS)
RULE = "api == Metadata and topic == nothing -> delay 1ms"


def ours(name: str, upstream: int, folder: Path, *more: str) -> list[str]:
    """The command of one of our variants."""
    command = [
        sys.executable,
        "-m",
        "kafkascope.tui.cli",
        "proxy",
        "--upstream",
        f"127.0.0.1:{upstream}",
    ]
    command += ["--quiet", "--control", "none", *more]
    if "recording" in name:
        file = folder / "bench.pcapng"
        command += ["-w", str(file), "--rotate-bytes", "256MB", "--keep-bytes", "512MB"]
    if "rule" in name:
        command += ["--fault", RULE]
    return command


def start(name: str, upstream: int, folder: Path, port: int = 0) -> Running:
    """Start a relay before the port `upstream`, at a given port or any."""
    port = port or free_port()
    port_file = folder / "unused"
    version = ""
    if name == "asyncio relay":
        command = [sys.executable, str(HERE), "--as", "relay"]
        command += [str(upstream), str(port_file), str(port)]
    elif name in RIVALS:
        command, version = RIVALS[name](folder, upstream, port)
    else:
        command = ours(name, upstream, folder, "--listen", f"127.0.0.1:{port}")
    running = Running(name, command, port_file, port)
    running.version = version
    return running


def start_all(
    names: list[str], begin: Callable[[str], Running]
) -> tuple[dict[str, Running], list[str]]:
    """Relays by name, and the names that are there; says which are not, and why."""
    relays: dict[str, Running] = {}
    there = []
    for name in names:
        if name != "direct":
            try:
                relays[name] = begin(name)
            except Missing as missing:
                print(f"{name}: skipped: {missing}")
                continue
        there.append(name)
    return relays, there


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
    with far_end(folder) as upstream:
        relays, names = start_all(names, lambda name: start(name, upstream, folder))
        results: dict[str, dict[str, list[float]]] = {name: {} for name in names}
        try:
            for turn in range(rounds + 1):
                for name in names:
                    relay = relays.get(name)
                    port = relay.port if relay else upstream
                    for kind in ("produce", "fetch", "ping"):
                        before = relay.cpu_s() if relay else 0.0
                        try:
                            told = measure(kind, port, 3000 if kind == "ping" else amount)
                        except subprocess.CalledProcessError as error:
                            said = relay.last_words() if relay else ""
                            raise SystemExit(f"{name}, {kind}: {error.stderr}{said}") from error
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
    epilogue(relays)


def epilogue(relays: dict[str, Running]) -> None:
    """Versions, losses, and how busy the machine was."""
    versions = [f"{n} {r.version}" for n, r in relays.items() if r.version]
    print(f"rivals: {', '.join(versions) or 'none'}; Python {sys.version.split()[0]}")
    for relay in relays.values():
        if lost := relay.left_out():
            print(f"{relay.name}: {lost}")
    print("load average: " + " ".join(f"{load:.1f}" for load in os.getloadavg()))


def report(results: dict[str, dict[str, list[float]]], memory: dict[str, float]) -> None:
    head = f"{'':26}{'produce MB/s':>13}{'of relay':>9}{'CPU s/GB':>9}"
    head += f"{'fetch MB/s':>12}{'of relay':>9}"
    print(head + f"{'CPU s/GB':>9}{'p50 us':>8}{'added':>7}{'p99 us':>8}{'peak MB':>8}")

    def median(name: str, what: str) -> float:
        return statistics.median(results[name][what])

    def ratio(name: str, what: str) -> float:
        pairs = zip(results[name][what], results["asyncio relay"][what], strict=True)
        return statistics.median(mine / theirs for mine, theirs in pairs)

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
    parser.add_argument("--only", help="variants, with ; between them")
    parser.add_argument("--no-rivals", action="store_true", help="only nothing, the relay, ours")
    parser.add_argument("--soak", action="store_true")
    parser.add_argument("--soak-bytes", type=float, default=1e10)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--records", type=int, default=300_000, help="of each run with --real")
    given = parser.parse_args()
    if given.soak:
        soak(int(given.soak_bytes))
        return
    # Whoever stops us stops what we started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    names = list(VARIANTS)
    if given.no_rivals:
        names = [name for name in names if name not in RIVALS]
    if given.only:
        names = [name for name in names if name in given.only.split(";")]
    if "kroxylicious" in names or "toxiproxy" in names:
        if not os.environ.get(INSIDE):
            prepare()
        enter_namespace()
    if given.real:
        from benchmarks import proxy_real

        proxy_real.run(given.rounds, names, given.records, sys.modules[__name__])
        return
    frames(given.rounds, int(given.bytes), names)


if __name__ == "__main__":
    main()
