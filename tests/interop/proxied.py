"""Our proxy before a cluster of the interop tests, and who connected to the brokers meanwhile."""

import asyncio
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any

from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.recording import watch
from kafkascope.proxy.recording.recorder import Recorder
from tests.interop.brokers import Cluster, KRaftCluster
from tests.interop.compare import Recording, kafkascope
from tests.interop.drivers import Story
from tests.interop.processes import tcpdump
from tests.kit.authority import Authority


class SecuredCluster(KRaftCluster):
    """Nodes that speak TLS, too: SSL wants a client's certificate, SASL_SSL a password."""

    names = (*KRaftCluster.names, "SSL", "SASL_SSL")
    listeners = (*KRaftCluster.listeners, "SSL", "SASL_SSL")

    def __init__(self, version: str, nodes: int, authority: Authority) -> None:
        super().__init__(version, nodes)
        self.authority = authority
        self.certificate = authority.issue("broker", "127.0.0.1")

    def stop(self) -> None:
        """At once: a quorum that loses its nodes together takes half a minute to end in order."""
        for node in self.nodes:
            node.stop(signal.SIGKILL)
        super().stop()

    def configuration(
        self, number: int, ports: dict[str, int], controllers: Sequence[str], home: Path
    ) -> dict[str, str]:
        """server.properties of one node."""
        settings = super().configuration(number, ports, controllers, home)
        settings["listener.security.protocol.map"] += ",SSL:SSL,SASL_SSL:SASL_SSL"
        for name, value in tuple(settings.items()):
            if "sasl_plaintext" in name:
                settings[name.replace("sasl_plaintext", "sasl_ssl")] = value
        return settings | {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.certificate),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.sasl_ssl.ssl.client.auth": "none",
            "super.users": settings["super.users"] + ";User:CN=client",
        }


class Proxied:
    """A cluster as clients see it through proxies, one for each listener that they use."""

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        listeners: tuple[str, ...] = ("PLAINTEXT", "SASL_PLAINTEXT"),
        ca_folder: Path | None = None,
        **options: Any,
    ) -> None:
        self.cluster = cluster
        self.version = cluster.version
        self.folder = folder
        self.proxies: dict[str, KafkaProxy] = {}
        self._watchers: dict[str, subprocess.Popen[bytes]] = {}
        self._listeners = listeners
        self._options = options | {"folder": ca_folder}
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self) -> "Proxied":
        self._thread.start()
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in self._listeners:
            recorder = Recorder(self.folder / f"{name.lower()}.pcapng")
            self._watch(name, recorder)
            upstream = self.cluster.bootstrap(name)
            proxy = KafkaProxy(upstream, recorder=recorder, **self._options)
            self.run(proxy.start())
            self.proxies[name] = proxy
        return self

    def __exit__(self, *failure: object) -> None:
        for proxy in self.proxies.values():
            self.run(proxy.stop())
        for watcher in self._watchers.values():
            watcher.wait(120)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()

    def run(self, what: Coroutine[Any, Any, Any]) -> Any:
        """Run something in the proxies' loop."""
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(120)

    def _watch(self, name: str, recorder: Recorder) -> None:
        """Print what passes live, as the command does."""
        theirs, ours = os.pipe()
        with (self.folder.with_name(f"live-{name.lower()}")).open("wb") as lines:
            self._watchers[name] = subprocess.Popen(
                watch.command("--json"), stdin=theirs, stdout=lines
            )
        os.close(theirs)
        recorder.add_pipe(ours, "lines")

    def live(self, name: str) -> list[dict[str, Any]]:
        """What was printed live of a listener."""
        lines = self.folder.with_name(f"live-{name.lower()}").read_text().splitlines()
        return [json.loads(line) for line in lines]

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
    with tcpdump("lo", condition, "-n", "-l") as lines:
        yield seen
        time.sleep(0.5)
    seen.ports.update(
        int(found[1]) for line in lines if (found := re.search(r" > [\d.]+\.(\d+): ", line))
    )


def checked(proxied: Proxied, story: Story) -> Recording:
    """The recording, which has to be whole and to be what was seen live."""
    recording = Recording(proxied.folder, frozenset(), story).read()
    assert recording.exchanges
    assert recording.undecoded() == []
    for name in proxied.proxies:
        live = proxied.live(name)
        kept = kafkascope("ls", proxied.folder / f"{name.lower()}.pcapng", "--json")
        for listed in (live, kept):
            # Of a file by the first byte, live by the end of each exchange.
            assert [each.pop("number") for each in listed] == list(range(1, len(listed) + 1))
            for exchange in listed:
                del exchange["exchange_id"]  # made of the source, too
            listed.sort(key=itemgetter("frames", "connection", "correlation_id"))
        assert live == kept, f"{name}: live is not what was recorded"
    return recording
