"""Our proxy before a cluster of the interop tests, and who connected to the brokers meanwhile."""

import asyncio
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proxy import KafkaProxy, Recorder
from tests.interop.brokers import Cluster

__all__ = ["Proxied", "Visitors", "visitors"]


class Proxied:
    """A cluster as clients see it through proxies, one for each listener that they use."""

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        listeners: tuple[str, ...] = ("PLAINTEXT", "SASL_PLAINTEXT"),
        **options: Any,
    ) -> None:
        self.cluster = cluster
        self.version = cluster.version
        self.folder = folder
        self.proxies: dict[str, KafkaProxy] = {}
        self._listeners = listeners
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "Proxied":
        self._thread.start()
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in self._listeners:
            recorder = Recorder(self.folder / f"{name.lower()}.pcapng")
            upstream = self.cluster.bootstrap(name)
            proxy = KafkaProxy(upstream, recorder=recorder, **self._options)
            self.run(proxy.start())
            self.proxies[name] = proxy
        return self

    def __exit__(self, *failure: object) -> None:
        for proxy in self.proxies.values():
            self.run(proxy.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def run(self, what: Coroutine[Any, Any, Any]) -> Any:
        """Run something in the proxies' loop."""
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(60)

    def bootstrap(self, listener: str = "PLAINTEXT") -> str:
        """Where clients start."""
        return self.proxies[listener].bootstrap

    def ports(self, *listeners: str) -> list[int]:
        """Of the brokers behind."""
        return self.cluster.ports(*listeners)

    def own_ports(self) -> set[int]:
        """Local ports of all connections that the proxies made to brokers."""
        return {port for proxy in self.proxies.values() for port in proxy.upstream_ports}


class Visitors:
    """Source ports of the connections that brokers got."""

    def __init__(self) -> None:
        self.ports: set[int] = set()


@contextmanager
def visitors(ports: list[int]) -> Iterator[Visitors]:
    """Note every connection to these ports while something runs."""
    seen = Visitors()
    which = " or ".join(f"src port {port}" for port in ports)
    # The broker's SYN-ACK: attempts that it refuses are no visits.
    condition = f"tcp[tcpflags] & (tcp-syn|tcp-ack) == (tcp-syn|tcp-ack) and ({which})"
    command = ["tcpdump", "-i", "lo", "-n", "-l", condition]
    if os.geteuid() == 0:
        command[1:1] = ["-Z", "root"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stderr is not None
    assert process.stdout is not None
    said = ""
    while "listening on" not in said:
        line = process.stderr.readline()
        if not line:
            raise RuntimeError(f"tcpdump does not capture: {said}")
        said += line
    try:
        yield seen
        time.sleep(0.5)
    finally:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
        for found in re.finditer(r" > [\d.]+\.(\d+): ", output):
            seen.ports.add(int(found[1]))
