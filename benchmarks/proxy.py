"""What the proxy costs: speed, latency, CPU and memory, beside nothing and beside other relays.

    python benchmarks/proxy.py                   frames over loopback (some minutes)
    python benchmarks/proxy.py --real            ProducerPerformance and ConsumerPerformance
    python benchmarks/proxy.py --soak            10 GB, for the memory

Every round runs all variants one after the other, so that a busy machine hurts all alike; printed
are medians. What counts is CPU: seconds for each GB and microseconds for each round trip, beside
HAProxy with one thread (the asyncio relay where it is not installed). Shares of throughput are left
out: on two cores that load generator and server share they are noise. Rivals (benchmarks/rivals.py)
that cannot be had are left out with a reason; where that is allowed, all runs in a network
namespace of its own. Load generator and server are processes of their own. --floor: exit 1 when a
target is missed.
"""

from __future__ import annotations

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

from benchmarks.measuring import Arguments, Report, cpu_s, kafkascope, megabytes  # noqa: E402
from benchmarks.rivals import INSIDE, RIVALS, Missing, enter_namespace, free_port, prepare  # noqa: E402

SIZE = struct.Struct(">i")
FRAME_BYTES = 64 * 1024
ANSWER_BYTES = 500_000
# Produce v9's answer behind the correlation id: one topic, one partition, no error.
PRODUCED = b"\0\x02\x02t\x02" + struct.pack(">ihqqq", 0, 0, 1, -1, 0) + b"\x01\0\0\0" + bytes(5)
HEARTBEAT = struct.pack(">h5sih9sh", 5, b"group", 7, 9, b"member-id", -1)
# So many that ticks of 10 ms are 3 % of the CPU that a relay takes for them.
PINGS, WARM_UP = 10_000, 200
COSTS = ("produce cpu", "fetch cpu", "ping cpu")
TARGETS = {"kafkascope": 1.1, "kafkascope, a rule": 1.2, "kafkascope, recording": 3.0}
"""Of HAProxy's CPU, at most."""


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
    for turn in range(amount + WARM_UP):
        begin = time.perf_counter_ns()
        connection.sendall(request)
        left = 14
        while left:
            left -= len(connection.recv(left))
        if turn >= WARM_UP:
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
                # Before Python 3.11.3 a transport reads on when it is paused right here.
                self.early = b""
                self.transport.pause_reading()
                self.task = asyncio.ensure_future(self.connect())

        async def connect(self) -> None:
            loop = asyncio.get_running_loop()
            _, other = await loop.create_connection(lambda: Half(False), "127.0.0.1", upstream)
            self.peer, other.peer = other, self
            other.transport.write(self.early)
            self.transport.resume_reading()

        def data_received(self, data: bytes) -> None:
            if self.peer is None:
                self.early += data
            else:
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
        return cpu_s([self.process.pid])

    def memory_mb(self, what: str = "VmRSS") -> float:
        return megabytes([self.process.pid], what, "status")

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
    command = kafkascope("proxy", "--upstream", f"127.0.0.1:{upstream}")
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


def in_rounds(
    rounds: int,
    names: list[str],
    relays: dict[str, Running],
    direct: int,
    kinds: dict[str, float],
    measured: Callable[[str, str, int, int], dict[str, float]],
) -> tuple[dict[str, dict[str, list[float]]], dict[str, float]]:
    """Measure all kinds of work through all relays, round by round, the first to warm up; return
    what was measured by name, and peak memory. The relays end. `kinds`: the amount that CPU is
    divided by. `measured` takes name, kind, round and port."""
    results: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    try:
        for turn in range(rounds + 1):
            for name in names:
                relay = relays.get(name)
                for kind, amount in kinds.items():
                    before = relay.cpu_s() if relay else 0.0
                    try:
                        found = measured(name, kind, turn, relay.port if relay else direct)
                    except subprocess.CalledProcessError as error:
                        said = relay.last_words() if relay else ""
                        raise SystemExit(f"{name}, {kind}: {error.stderr}{said}") from error
                    found[f"{kind} cpu"] = (relay.cpu_s() - before if relay else 0.0) / amount
                    print(f"round {turn}, {name}, {kind}: {found}", file=sys.stderr, flush=True)
                    for what, value in found.items() if turn else ():
                        results[name].setdefault(what, []).append(value)
        return results, {name: relay.memory_mb("VmHWM") for name, relay in relays.items()}
    finally:
        for relay in relays.values():
            relay.stop()


def frames(rounds: int, amount: int, names: list[str], floor: bool) -> int:
    """Bulk both ways and round trips, through every relay; return the exit code."""

    def measured(_name: str, kind: str, _turn: int, port: int) -> dict[str, float]:
        found = measure(kind, port, PINGS if kind == "ping" else amount)
        return dict(zip(("p50", "p99"), found, strict=True)) if kind == "ping" else {}

    kinds = {"produce": amount / 1e9, "fetch": amount / 1e9, "ping": (PINGS + WARM_UP) / 1e6}
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    with far_end(folder) as upstream:
        relays, names = start_all(names, lambda name: start(name, upstream, folder))
        found = in_rounds(rounds, names, relays, upstream, kinds, measured)
    shutil.rmtree(folder, ignore_errors=True)
    code = report(*found, floor)
    epilogue(relays)
    return code


def epilogue(relays: dict[str, Running]) -> None:
    """Versions, losses, and how busy the machine was."""
    versions = [f"{n} {r.version}" for n, r in relays.items() if r.version]
    print(f"rivals: {', '.join(versions) or 'none'}; Python {sys.version.split()[0]}")
    for relay in relays.values():
        if lost := relay.left_out():
            print(f"{relay.name}: {lost}")
    print("load average: " + " ".join(f"{load:.1f}" for load in os.getloadavg()))


def report(
    results: dict[str, dict[str, list[float]]], memory: dict[str, float], floor: bool
) -> int:
    """Print medians and what each costs beside HAProxy; return the exit code."""
    yardstick = "haproxy" if "haproxy" in results else "asyncio relay"
    print(f"CPU, and in relation to {yardstick}'s")
    table = Report(
        "|<26 produce s/GB|13.2f fetch s/GB|12.2f round trip us|15.1f produce|9.2f fetch|7.2f"
        " ping|7.2f p50 us|9.0f added|8.0f p99 us|8.0f peak MB|8.0f"
    )
    medians = {
        name: {what: statistics.median(each) for what, each in row.items()}
        for name, row in results.items()
    }
    for name, row in medians.items():
        costs = [row[what] for what in COSTS]
        base = [medians.get(yardstick, row)[what] for what in COSTS]
        ratios = [cost / other if other else 0 for cost, other in zip(costs, base, strict=True)]
        added = row["p50"] - medians["direct"]["p50"] if "direct" in medians else 0.0
        slow = max(ratios) > TARGETS.get(name, max(ratios))
        latencies = row["p50"], added, row["p99"]
        table.line(name, *costs, *ratios, *latencies, memory.get(name, 0), missed=slow)
    return table.end(floor)


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
    parser = Arguments(__doc__, rounds=5, bytes=5e8, floor=False, soak=False, real=False)
    parser.add_argument("--only", help="variants, with ; between them")
    parser.add_argument("--no-rivals", action="store_true", help="only nothing, the relay, ours")
    parser.add_argument("--soak-bytes", type=float, default=1e10)
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
    sys.exit(frames(given.rounds, int(given.bytes), names, given.floor))


if __name__ == "__main__":
    main()
