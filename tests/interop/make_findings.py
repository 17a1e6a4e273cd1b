"""Makes the captures in `tests/analyzer/captures/`: traffic that shows one trouble each.

    python -m tests.interop.make_findings [NAME...]      (as root, those of `make_networks`)

Real brokers and clients; faults by the proxy where a cluster would not fail by itself, hand-made
requests where no client of today makes the mistake. Ports and folders are fixed, so that the bytes
on the wire name no machine.
"""

import gzip
import shutil
import sys
import tempfile
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

from tests.interop import make_findings_kit as kit
from tests.interop import processes
from tests.interop.brokers import KRaftCluster
from tests.interop.demo.network import BRIDGE, network
from tests.interop.sniff import sniff

ADVERTISED = ",".join(
    f"{name}://127.0.0.1:{port}"
    for name, port in (("PLAINTEXT", 9), ("INTERNAL", 9094), ("SASL_PLAINTEXT", kit.SASL))
)
TLS = {
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SSL"
    ),
    "listener.name.sasl_plaintext.ssl.keystore.type": "PEM",
    "listener.name.sasl_plaintext.ssl.keystore.location": str(kit.HOME / "key.pem"),
}
COMMON = {
    "auto.create.topics.enable": "false",
    "broker.rack": "a",
    # Groups whose dead members are missed soon.
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "5000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.share.min.session.timeout.ms": "3000",
    "group.share.session.timeout.ms": "5000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "1000",
}
SETTINGS: dict[str, dict[str, str]] = {
    "wrong-address": {"advertised.listeners": ADVERTISED},
    "overdue-transaction": {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "60000"},
    "plain-to-tls": TLS,
    "tls-only": TLS,
}
"""Scenarios that need a broker of their own."""
NODES = {"seen-by-one": 3}
"""Scenarios that need several."""
MODULES = ("make_findings_brokers", "make_records", "make_groups", "make_networks")
"""Where scenarios are registered."""

LARGE = 20_000
"""Larger captures are compressed."""


def make(name: str, cluster: KRaftCluster, folder: Path) -> None:
    """One capture."""
    function, ports = kit.SCENARIOS[name]
    raw = folder / f"{name}.pcap"
    with sniff(raw, ports, BRIDGE if name in kit.NETWORKS else "lo"):
        function(cluster)
    kit.UNTIL_LATER.close()
    data = raw.read_bytes()
    for suffix in (".pcap", ".pcap.gz"):
        (kit.TARGET / f"{name}{suffix}").unlink(missing_ok=True)
    if len(data) > LARGE:
        target = kit.TARGET / f"{name}.pcap.gz"
        target.write_bytes(gzip.compress(data, 9, mtime=0))
    else:
        target = kit.TARGET / f"{name}.pcap"
        target.write_bytes(data)
    print(f"{target.name}: {target.stat().st_size} bytes", flush=True)


def keystore() -> None:
    """A key and its certificate for a TLS listener."""
    kit.HOME.mkdir(parents=True, exist_ok=True)
    key, cert = kit.HOME / "key", kit.HOME / "cert"
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 9999 -subj /CN=localhost"
    processes.run(*words.split(), "-keyout", key, "-out", cert)
    (kit.HOME / "key.pem").write_bytes(key.read_bytes() + cert.read_bytes())


def run(
    names: list[str], settings: dict[str, str], nodes: int = 1, where: kit.Network | None = None
) -> None:
    """Make captures with one cluster, in a network of its own or on loopback."""
    shutil.rmtree(kit.HOME, ignore_errors=True)
    keystore()
    settings = {**COMMON, **settings}
    with ExitStack() as stack:
        if where is not None:
            spaces = stack.enter_context(network(*where.addresses))
            where.spaces.update({name: words[-1] for name, words in spaces.items()})
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        cluster = stack.enter_context(
            KRaftCluster("4.4.0", nodes, kit.HOME, base_port=kit.PORT, settings=settings)
        )
        for name in names:
            try:
                make(name, cluster, Path(folder))
            except Exception as error:  # the others are to be made all the same
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)


def main(names: list[str]) -> None:
    """Make all of them, or those named."""
    for each in MODULES:
        import_module(f"tests.interop.{each}")
    kit.TARGET.mkdir(exist_ok=True)
    wanted = names or list(kit.SCENARIOS)
    common = [name for name in wanted if name not in {*SETTINGS, *NODES, *kit.NETWORKS}]
    if common:
        run(common, {})
    for name in wanted:
        if name not in common:
            where = kit.NETWORKS.get(name)
            settings = where.settings if where else SETTINGS.get(name, {})
            run([name], settings, NODES.get(name, 1), where)


if __name__ == "__main__":
    main(sys.argv[1:])
