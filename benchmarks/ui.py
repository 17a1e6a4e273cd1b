"""The terminal UI on a million exchanges: `python benchmarks/ui.py --exchanges 1000000`.

Prints what design targets ask for: first rows, all rows (with what bodies say), keys while loading
and idle, the detail of a row, filters, sorting, memory, processor time of the reader and its
workers. The UI runs with Textual's headless driver, which does everything but write to a terminal;
the reader is the real child process. `terminal` does the same with the program itself in a pseudo
terminal: the first screen, and keys until the screen changes. With termshark installed, the same
file is opened there in the same run, in tmux.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import os
import pty
import random
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import generate
from measuring import Arguments, cpu_s, megabytes, tree

SIZE = (160, 50)


def make(path: Path, exchanges: int) -> None:
    """Small messages in turn, on 20 connections: batches of three records, 400 bytes in all."""
    records = b"".join(generate.record(at, None, b"kafkascope" * 10) for at in range(3))
    batch = generate.sealed(0, 0, 3, records, generate.START_NS)

    def turn(number: int, _now: int) -> generate.Turn:
        kind = generate.produce if number % 2 else generate.fetch
        return generate.Turn(number % 20, *kind(number, batch), (100, 100, 100))

    generate.traffic(path, turn, 20, turns=exchanges)


async def latencies(app: Any, pilot: Any, step: Callable[[], Any], times: int) -> list[float]:
    """Milliseconds from an action until it is drawn."""
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        done = step()
        if isinstance(done, Awaitable):
            await done
        app.screen._compositor.render_strips()
        await asyncio.sleep(0)
        found.append(1000 * (time.perf_counter() - begun))
        await asyncio.sleep(0.02)
    return found


def told(name: str, found: list[float]) -> None:
    """p50 and p95."""
    found.sort()
    p95 = found[min(len(found) - 1, int(0.95 * len(found)))]
    print(f"{name:<44} p50 {statistics.median(found):8.1f} ms   p95 {p95:8.1f} ms", flush=True)


@contextlib.contextmanager
def timed(name: str) -> Iterator[list[str]]:
    """Print how long the body takes, and what it adds to the list."""
    more: list[str] = []
    begun = time.perf_counter()
    yield more
    took = 1000 * (time.perf_counter() - begun)
    print(f"{name:<44} {took:12.1f} ms   {' '.join(more)}".rstrip(), flush=True)


async def measure(path: Path, exchanges: int) -> None:
    """Open the file and use it."""
    from kafkascope.tui.app import ScopeApp
    from kafkascope.tui.data.feed import Feed
    from kafkascope.tui.data.view import Order, View
    from kafkascope.tui.showing import GC_OLD_THRESHOLD, GC_THRESHOLD

    begun = time.perf_counter()
    feed = Feed([str(path)])
    app = ScopeApp(feed, path.name)
    async with app.run_test(size=SIZE) as pilot:
        gc.set_threshold(GC_THRESHOLD, 20, GC_OLD_THRESHOLD)  # as `tui.showing` does
        gc.freeze()
        while not len(feed.store):
            await asyncio.sleep(0.005)
        app.screen._compositor.render_strips()
        print(f"{'first rows':<44} {time.perf_counter() - begun:8.2f} s", flush=True)
        reader, progress = feed._process.pid, feed.store.progress
        child, seconds, mine = 0.0, 0.0, time.process_time()
        loading: list[float] = []
        while not progress.done:
            if feed._process.poll() is None:
                readers = tree(reader)
                child, seconds = max(child, megabytes(readers)), max(seconds, cpu_s(readers))
            loading += await latencies(app, pilot, lambda: app.list.action_move(1), 5)
            loading += await latencies(app, pilot, lambda: app.list.action_page(1), 1)
            await asyncio.sleep(0.2)
        took = time.perf_counter() - begun
        print(
            f"{'all rows':<44} {took:8.2f} s   {seconds:.1f} s of processor, "
            f"{time.process_time() - mine:.1f} here, load {os.getloadavg()[0]:.1f}, "
            f"{progress.failure or progress.said or 'no damage'}",
            flush=True,
        )
        assert len(feed.store) == exchanges, (len(feed.store), progress)
        if loading:
            told("keys meanwhile", loading)
        told("cursor, idle", await latencies(app, pilot, lambda: app.list.action_move(1), 60))
        told("page, idle", await latencies(app, pilot, lambda: app.list.action_page(1), 40))
        rng = random.Random(3)
        jump = lambda: app.list.move_to(rng.randrange(exchanges))  # noqa: E731
        told("jump, idle", await latencies(app, pilot, jump, 30))

        async def select() -> None:
            app.list.move_to(rng.randrange(exchanges))
            app.look()
            while app.inspector.decoding:
                await asyncio.sleep(0.001)

        told("select a row: detail and bytes", await latencies(app, pilot, select, 30))
        for text in ("api == Produce", 'latency > 1ms and client == "orders-svc"', "error != 0"):
            View(feed.store, text).advance(60)  # loads numpy
            with timed(f"filter {text}") as more:
                view = View(feed.store, text)
                while view.behind:
                    view.advance(60)
                more.append(f"{len(view):,} rows")
        for name in ("latency", "client", "number"):
            view = View(feed.store)
            with timed(f"sort by {name}"):
                view.sort(Order(name, True))
        from kafkascope.tui.data.columns import bad, with_text

        with timed("next error"):
            bad(feed.store)
        with timed("find a text"):
            with_text(feed.store, "nowhere")
        what = "memory of the UI, of reader and workers"
        here = megabytes(tree(os.getpid()))
        print(f"{what:<44} {here:8.0f} MB {child:6.0f} MB")
    feed.close()


class Terminal:
    """The program in a pseudo terminal."""

    def __init__(self, path: Path) -> None:
        self.begun = time.perf_counter()
        self._pid, self._descriptor = pty.fork()
        if not self._pid:
            os.environ["TERM"] = "xterm-256color"
            os.execv(
                sys.executable, [sys.executable, "-m", "kafkascope.tui.cli", "open", str(path)]
            )
        columns, lines = SIZE
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, size)

    def read(self, seconds: float) -> bytes:
        """What comes within that time, at once when something does."""
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        return os.read(self._descriptor, 1 << 20) if ready else b""

    def wait(self, seconds: float) -> None:
        """Let it work, and take what it draws."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)

    def keys(self, key: bytes, times: int, pause: float) -> list[float]:
        """Milliseconds from a key until something is drawn."""
        found = []
        for _ in range(times):
            begun = time.perf_counter()
            os.write(self._descriptor, key)
            self.read(2)
            found.append(1000 * (time.perf_counter() - begun))
            self.wait(pause)
        return found

    def close(self) -> None:
        """End it."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._descriptor)


def terminal(path: Path, patience: float) -> None:
    """First screen, first rows, keys once all is read (after `patience` seconds)."""
    first, rows = [], []
    for _ in range(5):
        shown = Terminal(path)
        seen = shown.read(10)
        first.append(time.perf_counter() - shown.begun)
        while b"Produce" not in seen and time.perf_counter() - shown.begun < 10:
            seen += shown.read(1)
        rows.append(time.perf_counter() - shown.begun)
        shown.close()
    print(f"{'terminal: something, rows':<44} {min(first):8.2f} {min(rows):6.2f} s", flush=True)
    shown = Terminal(path)
    shown.wait(patience)
    # Longer than the detail of a row takes: it must not be taken for the answer to the next key.
    told("terminal: cursor", shown.keys(b"j", 60, 0.25))
    told("terminal: page", shown.keys(b"\x1b[6~", 40, 0.25))
    told("terminal: jump", shown.keys(b"G", 1, 0.5) + shown.keys(b"g", 1, 0.5))
    shown.close()


def termshark(path: Path, patience: float) -> None:
    """Until the last packet is there."""
    if shutil.which("termshark") is None or shutil.which("tmux") is None:
        print("termshark or tmux is not installed: no ratio")
        return
    tmux = ["tmux", "-L", f"bench{os.getpid()}", "-f", "/dev/null"]
    begun = time.perf_counter()
    command = f"env -u COLUMNS -u LINES TERM=xterm-256color termshark -r {path}"
    subprocess.run([*tmux, "new-session", "-d", "-x", "160", "-y", "50", command], check=True)
    first = 0.0
    try:
        while time.perf_counter() - begun < patience:
            shown = subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True)
            if not first and "TCP" in shown.stdout:
                first = time.perf_counter() - begun
                print(f"{'termshark: first rows':<44} {first:8.2f} s", flush=True)
            if first and "Loading" not in shown.stdout and "%" not in shown.stdout:
                took = time.perf_counter() - begun
                print(f"{'termshark: all there':<44} {took:8.2f} s", flush=True)
                return
            time.sleep(0.1)
        print(f"termshark: not done after {patience:.0f} s")
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def main() -> None:
    """Make, measure, compare."""
    parser = Arguments(__doc__, exchanges=1_000_000)
    parser.add_argument("--capture", type=Path, help="made before by this script")
    parser.add_argument("--termshark", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--terminal", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--only", action="store_true", help="nothing but these two")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.capture or Path(folder) / "ui.pcap"
        if not path.exists():
            make(path, options.exchanges)
        print(
            f"{options.exchanges:,} exchanges, {path.stat().st_size / 1e6:.0f} MB, "
            f"load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        if not options.only:
            asyncio.run(measure(path, options.exchanges))
        if options.terminal:
            terminal(path, options.terminal)
        if options.termshark:
            termshark(path, options.termshark)


if __name__ == "__main__":
    main()
