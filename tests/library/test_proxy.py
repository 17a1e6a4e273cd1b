"""Proxies and brokers of the library, with a served capture in the place of a cluster."""

import asyncio
import gc
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import kafkascope as ks
from tests.kit.samples import ROOT, SAMPLES

SAMPLE = SAMPLES / "libraries.pcap"


@pytest.fixture(scope="module")
def broker() -> Iterator[ks.Broker]:
    with ks.Broker(SAMPLE) as broker:
        yield broker


def ask(bootstrap: str, client: bytes = b"raw") -> bytes:
    """An ApiVersions request, version 0, and its answer."""
    host, _, port = bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), 60) as link:
        request = bytes([0, 18, 0, 0, 0, 0, 0, 7, 0, len(client)]) + client
        link.sendall(len(request).to_bytes(4, "big") + request)
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
            data = link.recv(65536)
            assert data
            answer += data
    return answer[8:]


def test_what_passes_is_seen(broker: ks.Broker, tmp_path: Path) -> None:
    with ks.Proxy(broker.bootstrap, path=tmp_path / "kept.pcapng") as proxy:
        keys = ks.decode(ask(proxy.bootstrap), "ApiVersions", 0, "response")["api_keys"]
        assert {"api_key": 0, "min_version": 0}.keys() <= keys[0].keys()
        (exchange,) = proxy.exchanges()
        assert (exchange.api, exchange.api_version, exchange.client_id) == ("ApiVersions", 0, "raw")
        assert exchange.response["api_keys"] == keys
        assert proxy.exchanges("client == other") == []
        assert proxy.records() == []
        assert proxy.findings("warning") == []
    (again,) = ks.open(tmp_path / "kept.pcapng")
    assert again.id == exchange.id


def test_faults_fire_and_holds_hold(broker: ks.Broker) -> None:
    with ks.Proxy(broker.bootstrap, faults=["api == Metadata -> drop"]) as proxy:
        name = proxy.fault("api == ApiVersions -> error UNSUPPORTED_VERSION once")
        answer = ks.decode(ask(proxy.bootstrap), "ApiVersions", 0, "response")
        assert answer["error_code"] == 35
        assert [each["fired"] for each in proxy.faults()] == [0, 1]
        proxy.remove(name)
        proxy.clear()
        assert proxy.faults() == []
        proxy.hold("api == ApiVersions")
        asking = threading.Thread(target=ask, args=(proxy.bootstrap,))
        asking.start()
        (held,) = proxy.held()
        assert held["api"] == "ApiVersions"
        with pytest.raises(ks.UsageError, match="1 frames are held, not 2"):
            proxy.held(2, timeout=0.1)
        proxy.release()
        asking.join(60)
        assert not asking.is_alive()
        with pytest.raises(ks.RequestRefused, match="no frame 77 is held"):
            proxy.drop(77)
        with pytest.raises(ks.RequestRefused):
            proxy.fault("api == Nothing -> explode")


def test_what_is_not_started_says_so(broker: ks.Broker, tmp_path: Path) -> None:
    proxy = ks.Proxy(broker.bootstrap)
    with pytest.raises(ks.NotStarted, match="start"):
        _ = proxy.bootstrap
    with pytest.raises(ks.NotStarted):
        proxy.faults()
    with pytest.raises(ks.NotStarted, match="no such file"):
        ks.Broker(tmp_path / "missing.pcap").start()
    with pytest.raises(ks.NotStarted, match="expl"):
        ks.Proxy(broker.bootstrap, faults=["api == Fetch -> explode"]).start()


def test_asyncio_goes_on_meanwhile(broker: ks.Broker) -> None:
    async def story() -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.01)

        ticking = asyncio.create_task(tick())
        async with ks.Proxy(broker.bootstrap) as proxy:
            await asyncio.to_thread(ask, proxy.bootstrap)
            found = await asyncio.to_thread(proxy.exchanges)
        ticking.cancel()
        assert ticks > 10
        return len(found)

    assert asyncio.run(story()) == 1


def test_a_forgotten_proxy_ends(broker: ks.Broker) -> None:
    proxy = ks.Proxy(broker.bootstrap).start()
    pid = proxy.ask("status")["pid"]
    path = proxy.path
    del proxy
    gc.collect()
    assert _gone(pid)
    assert not path.exists()


def test_a_proxy_ends_with_its_program(broker: ks.Broker) -> None:
    code = (
        "import os, kafkascope as ks\n"
        f"proxy = ks.Proxy('{broker.bootstrap}').start()\n"
        "print(proxy.ask('status')['pid'], flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert _gone(int(done.stdout))


def _gone(pid: int) -> bool:
    """Whether a process ends within a while; one that nobody has waited for is over, too."""
    stat = Path(f"/proc/{pid}/stat")
    for _ in range(3000):
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False
