"""Makes the capture of the shop and the demo again: `python -m tests.interop.demo.make`, as root.

Real brokers, real clients, one minute, tcpdump on the bridge between them; nothing is edited.
The demo is a part of it (`derive`).
"""

import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.interop.demo import actors, derive
from tests.interop.demo.machines import MACHINES
from tests.interop.demo.network import BRIDGE, network
from tests.interop.demo.shop import ADDRESSES, PORTS, ShopCluster, prepare
from tests.interop.drivers import Client, Driver
from tests.interop.maven import BROKERS, CLIENTS, compiled, jars
from tests.interop.sniff import sniff
from tests.kit.samples import ROOT

HOME = Path("/var/tmp/kafka-shop")  # its name may be on the wire
JAVA = ("Stores", "Driver", "Json", "Polling", "Known", "Sell", "Follow", "headers/Headers")
OLD_JAVA = (*JAVA[:-1], "noheaders/Headers")


@dataclass(frozen=True, slots=True)
class Housed(Client):
    """A Java client on a machine of its own."""

    prefix: tuple[str, ...] = ()

    def command(self) -> list[str]:
        """How to start its driver."""
        if self.version in BROKERS:
            lib = jars(f"broker-{self.version}", BROKERS[self.version])
        else:
            lib = jars(f"client-{self.version}", CLIENTS[self.version])
        classes = compiled(lib, OLD_JAVA if self.version.startswith("0.") else JAVA)
        jvm = ("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return [*self.prefix, "java", *jvm, quiet, "-cp", classes.path, "Driver"]


class Play:
    """What happens when: seconds since the capture began."""

    def __init__(self, prefixes: dict[str, list[str]], folder: Path) -> None:
        self.prefixes = prefixes
        self.folder = folder
        self.drivers: dict[str, Driver] = {}
        self.running: list[subprocess.Popen[bytes]] = []
        self.threads: list[threading.Thread] = []
        self.cues: list[tuple[float, Callable[[], None]]] = []

    def java(self, name: str, version: str) -> None:
        """Start a JVM that waits for steps."""
        client = Housed(name, "java", version, prefix=tuple(self.prefixes[name]))
        log = self.folder / f"{name}.log"
        common = {"bootstrap": actors.ALL, "client": name}
        self.drivers[name] = Driver(client, log, common)

    def step(self, at: float, name: str, what: str, **arguments: object) -> None:
        """A Java program does something."""

        def act() -> None:
            said = self.drivers[name].step(what, may_fail=True, **arguments)
            print(f"{name}: {said}")

        def start() -> None:
            thread = threading.Thread(target=act)
            thread.start()
            self.threads.append(thread)

        self.cues.append((at, start))

    def program(self, at: float, name: str, *words: str) -> None:
        """A Python program runs to its end."""
        command = [sys.executable, "-m", "tests.interop.demo.actors", name, *words]

        def start() -> None:
            log = (self.folder / f"{name}.log").open("wb")
            started = subprocess.Popen(
                [*self.prefixes[name], *command], cwd=ROOT, stdout=log, stderr=log
            )
            self.running.append(started)

        self.cues.append((at, start))

    def at(self, at: float, act: Callable[[], None]) -> None:
        """Something else happens."""
        self.cues.append((at, act))

    def warm_up(self) -> None:
        """Every JVM loads its classes before the capture: on a busy machine that takes seconds."""
        rest = {"conf.session.timeout.ms": 3000, "conf.max.block.ms": 20_000}
        for name in self.drivers:
            how: dict[str, object] = {"topic": "catalog", "client": "warm-up"}
            if name.startswith("billing"):
                self.step(0, name, "Follow", group=f"warm-up-{name}", seconds=6, **rest, **how)
            else:
                self.step(0, name, "Sell", count=1, every=1, **rest, **how)
        old = {"group": "warm-up", "topic": "catalog", "seconds": 4, "client": "warm-up"}
        self.perform(0)
        self.step(0, "legacy-export", "Follow", **old)
        self.perform(0)

    def perform(self, seconds: float) -> None:
        """Until the end, and until all have ended."""
        begun = time.monotonic()
        for at, act in sorted(self.cues, key=lambda cue: cue[0]):
            time.sleep(max(0.0, begun + at - time.monotonic()))
            act()
        time.sleep(max(0.0, begun + seconds - time.monotonic()))
        for thread in self.threads:
            thread.join(60)
        for program in self.running:
            program.wait(60)
        self.cues.clear()

    def close(self) -> None:
        """The JVMs end with their input."""
        for driver in self.drivers.values():
            driver.__exit__()


def write_script(play: Play, cluster: ShopCluster) -> None:
    """The minute."""
    member = {
        "topic": "orders",
        "group": "billing",
        "conf.session.timeout.ms": 5000,
        "conf.heartbeat.interval.ms": 1500,
        "conf.fetch.max.wait.ms": 1000,
    }
    second = play.drivers["billing-2"].process
    node2, node3 = cluster.nodes[1], cluster.nodes[2]
    sell = {"topic": "orders", "conf.compression.type": "zstd", "conf.linger.ms": 20}
    play.step(0.2, "orders-svc", "Sell", count=110, burst=5, every=600, **sell)
    # Why did the group rebalance? One joins, one falls silent, one is too busy, one leaves.
    play.step(1.0, "billing-1", "Follow", seconds=48, **member)
    play.step(6.0, "billing-2", "Follow", seconds=34, **member)
    play.at(14.0, lambda: second.send_signal(signal.SIGSTOP))
    play.at(24.0, lambda: second.send_signal(signal.SIGCONT))
    busy = {"busyAfter": 4, "busy": 6000, "conf.max.poll.interval.ms": 4000}
    play.step(29.0, "billing-3", "Follow", seconds=16, **busy, **member)
    # What the upgrade breaks.
    old = {"topic": "exports", "conf.fetch.max.wait.ms": 1000}
    play.step(2.5, "legacy-export", "Sell", count=5, burst=4, every=200, topic="exports")
    play.step(8.0, "legacy-export", "Follow", group="legacy-export", seconds=7, **old)
    play.program(2.0, "clickstream")
    play.program(4.0, "analytics")
    play.program(8.0, "audit")
    play.program(11.0, "image-svc")
    play.program(13.0, "bulk-load")
    play.program(16.0, "invoicing")
    typo = {"topic": "ordres", "conf.max.block.ms": 6000}
    play.step(18.0, "mailer", "Sell", count=1, every=1, **typo)
    play.program(20.0, "crm-sync")
    play.program(23.0, "partner-feed")
    play.program(25.0, "vendor-app")
    play.program(27.0, "prometheus")
    play.program(29.0, "reports-ui")
    play.program(14.0, "healthcheck")
    play.program(36.0, "ledger")
    play.program(39.0, "payments-svc")
    # Node 2 stands still for four seconds: who waits for its copies is slow, who asks it gives up.
    play.program(49.0, "checkout")
    play.at(53.0, lambda: node2.process and node2.process.send_signal(signal.SIGSTOP))
    play.at(57.0, lambda: node2.process and node2.process.send_signal(signal.SIGCONT))
    # Node 3 is restarted; others lead its partitions from then on.
    play.program(58.0, "inventory-sync", "20")
    play.at(61.0, node3.stop)
    play.at(64.5, node3.start)


def main() -> None:
    """Make it."""
    shutil.rmtree(HOME, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name, network(ADDRESSES, MACHINES) as prefixes:
        folder = Path(name)
        capture = folder / "shop.pcap"
        play = Play(prefixes, folder)
        with ShopCluster(HOME) as cluster:
            prepare(cluster)
            for number in (1, 2, 3):
                play.java(f"billing-{number}", "4.4.0")
            play.java("orders-svc", "4.4.0")
            play.java("legacy-export", "0.10.2.2")
            play.java("mailer", "2.4.1")
            play.warm_up()
            time.sleep(3)  # what was said before the capture is over
            write_script(play, cluster)
            try:
                with sniff(capture, PORTS, BRIDGE):
                    play.perform(78)
            finally:
                play.close()
            for log in sorted(folder.glob("*.log")):
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-600:]}")
        try:
            derive.SHOP.write_bytes(derive.packed(capture.read_bytes()))
        except RuntimeError:
            shutil.copy(capture, "/var/tmp/shop-too-large.pcap")
            raise
        derive.main()
    shutil.rmtree(HOME, ignore_errors=True)


if __name__ == "__main__":
    main()
