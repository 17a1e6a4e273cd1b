"""Kafka over TLS by real clients: who connects to what, and who writes the key log.

A `Case` runs while tcpdump captures; what comes of it is a capture, a key log and the truth about
both. Some captures are made of others: without some keys, without a packet, with keys inside.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import shutil
import ssl
import struct
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.interop import tls_truth
from tests.interop.brokers import USERS, Node, free_ports
from tests.interop.drivers import CLIENT_LIST, Driver
from tests.interop.maven import Artifact, jars
from tests.interop.processes import listens, run, until
from tests.interop.proxied import SecuredCluster
from tests.interop.scenarios import make_topics
from tests.interop.sniff import sniff
from tests.interop.tls_forwarder import Forwarder, Front, configuration
from tests.kit.authority import Authority
from tests.kit.wire import request

COUNT = 16
"""Records of a case: captures are to be small."""
KEY_AGENT = Artifact("name.neykov:extract-tls-secrets:4.0.0", ("com.sun:tools",))

Step = Callable[["Run"], None]


def agent() -> Path:
    """The Java agent that writes key logs."""
    return jars("agent", (KEY_AGENT,)) / "extract-tls-secrets-4.0.0.jar"


class TlsCluster(SecuredCluster):
    """One broker whose JVM logs its secrets in `keys`.

    Listeners besides those of all: TLS asks for no certificate; TLS12 does not either and SSL12
    does, and both know no newer version; BEHIND is plain and tells clients a forwarder's port.
    """

    names = (*SecuredCluster.names, "TLS", "TLS12", "SSL12", "BEHIND")
    listeners = (*SecuredCluster.listeners, "TLS", "TLS12", "SSL12", "BEHIND")

    def __init__(self, authority: Authority, front_port: int, key_limits: str = "") -> None:
        super().__init__("4.4.0", 1, authority)
        self.front_port = front_port
        self.keys = self.home / "broker.keys"
        self.key_limits = key_limits

    def node(self, *what: Any) -> Node:
        """One node, with the agent in it."""
        node = super().node(*what)
        options = [f"-javaagent:{agent()}={self.keys}"]
        if self.key_limits:
            options.append(f"-Djava.security.properties={_limits(self.home, self.key_limits)}")
        node.command[1:1] = options
        return node

    def configuration(self, number: int, ports: dict[str, int], *more: Any) -> dict[str, str]:
        """server.properties of one node."""
        settings = super().configuration(number, ports, *more)
        settings["listener.security.protocol.map"] += (
            ",TLS:SSL,TLS12:SSL,SSL12:SSL,BEHIND:PLAINTEXT"
        )
        told = f"BEHIND://127.0.0.1:{ports['BEHIND']}"
        front = f"BEHIND://127.0.0.1:{self.front_port}"
        settings["advertised.listeners"] = settings["advertised.listeners"].replace(told, front)
        return settings | {
            "listener.name.tls.ssl.client.auth": "none",
            "listener.name.tls12.ssl.client.auth": "none",
            "listener.name.tls12.ssl.enabled.protocols": "TLSv1.2",
            "listener.name.ssl12.ssl.client.auth": "required",
            "listener.name.ssl12.ssl.enabled.protocols": "TLSv1.2",
        }


def _limits(folder: Path, limits: str) -> Path:
    path = folder / "limits.security"
    path.write_text(f"jdk.tls.keyLimits={limits}\n")
    return path


@dataclass(frozen=True, slots=True)
class Case:
    """One capture: who talks TLS with whom."""

    name: str
    what: str
    client: str
    listener: str = "TLS"
    """Of the broker; with a `front` its own is behind it."""
    front: Front | None = None
    keys: str = "client"
    """Who logs: client, broker or front."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """For each step of the client."""
    security: str = ""
    """Lines of java.security for the client's JVM."""
    openssl: Mapping[str, str] = field(default_factory=dict)
    """Commands of SSL_CONF for a client that is a Python program."""
    limits: str = ""
    """`jdk.tls.keyLimits` of the broker, which then is one of its own."""
    step: Step | None = None
    cause: str = ""
    """Why no handshake is completed."""
    certificate: str = "broker"
    """Of the front: broker, expired, other-name, stranger."""
    change: str = ""
    """What becomes of the capture of `of`: inside, missing-key, loss, premaster."""
    of: str = ""


@dataclass(slots=True)
class Made:
    """A capture with its key log and the truth about both."""

    capture: Path
    keys: Path
    truth: dict[str, Any]


@dataclass(slots=True)
class Run:
    """A case under way."""

    case: Case
    driver: Driver
    topic: str
    start: Callable[[], None]
    """Begins the capture, where the case does not want it from the start."""
    steps: list[dict[str, Any]]

    def step(self, name: str, do: str, **arguments: object) -> list[list[Any]]:
        """One step of the client; its rows."""
        told = self.driver.step(name, topic=self.topic, **arguments)
        rows: list[list[Any]] = told["produced" if do == "produce" else "consumed"]
        self.note(do, rows)
        return rows

    def note(self, do: str, rows: list[list[Any]]) -> None:
        """What a client wrote or read, for the truth."""
        self.steps.append(
            {
                "do": do,
                "topic": self.topic,
                "client": self.case.client,
                "config": {k: v for k, v in self.case.settings.items() if k != "password"},
                f"{do}d": len(rows),
                "record_fields": ["partition", "offset", "key", "value", "headers"],
                "records": [[*r[1:3], _text(r[4]), _text(r[5]), r[6]] for r in rows],
                "values_sha256": _digest(rows),
            }
        )

    def fail(self) -> None:
        """A step that ends with an error, soon."""
        told = self.driver.step("Produce", topic=self.topic, count=1, may_fail=True)
        assert "failed" in told, told


def _text(value: Any) -> Any:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict) else value


def _digest(rows: list[list[Any]]) -> str:
    values = sorted(b"\0" if r[5] is None else str(_text(r[5])).encode() for r in rows)
    return hashlib.sha256(b"".join(value + b"\n" for value in values)).hexdigest()


def write_and_read(run: Run) -> None:
    """Produce, then consume in a group."""
    run.step("Produce", "produce", count=COUNT, codec="gzip")
    run.step("Consume", "consume", count=COUNT, group=f"{run.topic}.group")


def write_much(run: Run) -> None:
    """Many small requests; who reads would get no further than the first key update."""
    run.step("Produce", "produce", count=2 * COUNT)


def write_and_read_much(run: Run) -> None:
    """Many small requests, in both directions."""
    write_much(run)
    run.step("Consume", "consume", count=2 * COUNT)


def begin_between(run: Run) -> None:
    """The capture begins while a consumer is connected, then records are written and read."""
    holds = {"topic": run.topic, "group": f"{run.topic}.group"}
    run.driver.common["name"] = "m"
    run.driver.step("Produce", topic=run.topic, count=4)
    run.driver.step("Member", do="join", holds=2, records=4, **holds)
    run.start()
    # These come with the answer to a Fetch from before the capture.
    run.step("Produce", "produce", count=4, first=4)
    run.driver.step("Member", do="await", records=8, **holds)
    rows = run.step("Produce", "produce", count=COUNT, first=8)
    told = run.driver.step("Member", do="await", records=8 + COUNT, **holds)
    run.driver.step("Member", do="leave", **holds)
    read = {tuple(row) for row in told["rows"]}
    assert {tuple(row[:3]) for row in rows} <= read
    if "TLSv1.2" not in run.case.settings.values():  # there nobody can read what was fetched
        run.note("consume", rows)


def give_up(run: Run) -> None:
    """A client that never gets through."""
    run.fail()


ALICE = {"user": "alice", "password": USERS["alice"], "mechanism": "SCRAM-SHA-256"}
ONLY_12 = {"MaxProtocol": "TLSv1.2"}
ONLY_13 = {"MinProtocol": "TLSv1.3"}


def old(ciphers: str, **more: Any) -> Front:
    """A forwarder that speaks TLS 1.2 with these suites."""
    return Front(f"{ciphers}:@SECLEVEL=0", ONLY_12, **more)


def new(suite: str = "", **more: str) -> Front:
    """A forwarder that speaks TLS 1.3."""
    suites = {"Ciphersuites": suite} if suite else {}
    return Front(openssl=ONLY_13 | suites | more)


SOON = {
    "java": {
        "conf.max.block.ms": "2500",
        "conf.request.timeout.ms": "2000",
        "conf.delivery.timeout.ms": "2500",
        "conf.reconnect.backoff.ms": "700",
        "conf.reconnect.backoff.max.ms": "900",
    },
    "librdkafka": {"conf.message.timeout.ms": "1500", "conf.reconnect.backoff.ms": "700"},
}
"""Settings with which clients give up before they have tried often."""


KEY_LIMITS = "AES/GCM/NoPadding KeyUpdate 2^10"
SMALL_JAVA = {
    "conf.batch.size": "250",
    "conf.linger.ms": "0",
    "conf.max.partition.fetch.bytes": "300",
}
SMALL_LIBRDKAFKA = {
    "conf.batch.num.messages": "3",
    "conf.message.max.bytes": "1000",
    "conf.fetch.message.max.bytes": "300",
}
"""Settings with which clients send many requests."""

OLD_RSA = "jdk.tls.disabledAlgorithms=SSLv3"
JAVA_12 = {"conf.ssl.enabled.protocols": "TLSv1.2"}
ANY_SUITE = {"conf.ssl.cipher.suites": "ALL:@SECLEVEL=0"}
JAVA, JAVA_39, JAVA_24 = "java-4.4.0", "java-3.9.2", "java-2.4.1"
SCRAM, MUTUAL = "SASL_SSL with SCRAM", "client certificates"
GCM_12 = old("ECDHE+AESGCM")
RESUME = {"resume": "yes"}
RETRY = "the server wants another group: HelloRetryRequest"
AGAIN = "the server asks for a new handshake again and again"
MIDSTREAM = "the capture begins while a Java consumer is connected"
BY_ID = "later connections resume by session id; the client logs `RSA Session-ID` lines"
BY_TICKET = "later connections resume by ticket and have no line of their own"
BY_PSK = "later connections resume with a pre-shared key"
LIMITED = "a broker with jdk.tls.keyLimits of 1 KB"
CCM, CHACHA20 = "TLS_AES_128_CCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"
PADDED = "the server pads records to 512 bytes"
RSA, RSA_CBC = "RSA key exchange", "AES-CBC with SHA-1"
NO_CA = {"ca": ""}


class Failure(NamedTuple):
    """Why no handshake is completed."""

    cause: str
    what: str
    certificate: str = "broker"
    """Of the front."""


EXPIRED = Failure("certificate-expired", "the server's certificate has expired", "expired")
OTHER_NAME = Failure(
    "certificate-name", "the server's certificate is for another host", "other-name"
)
STRANGER = Failure(
    "certificate-issuer", "nobody knows who signed the server's certificate", "stranger"
)
MISSING = Failure(
    "client-certificate-missing", "the broker wants a client certificate, the client has none"
)
VERSION = Failure("no-common-version", "the client knows TLS 1.2 at most, the server wants 1.3")
SUITE = Failure("no-common-suite", "client and server have no suite in common")
PLAIN_TO_TLS = Failure("plain-to-tls", "a client without TLS on a port with TLS")
TLS_TO_PLAIN = Failure("tls-to-plain", "a client with TLS on a plain port")


def failing(
    name: str, why: Failure, client: str, front: Front | None = None, keys: str = "", **more: Any
) -> Case:
    """A case in which no handshake is completed. Of other clients than the newest for Java, which
    logs, the front does."""
    keys = keys or ("front" if front and client != JAVA else "client")
    more["settings"] = SOON[client.partition("-")[0]] | more.get("settings", {})
    more |= {"step": give_up, "cause": why.cause, "certificate": why.certificate}
    return Case(name, why.what, client, front=front, keys=keys, **more)


def suite(name: str, client: str, ciphers: str, what: str = "", **more: Any) -> Case:
    """A case with a suite of TLS 1.2, whose forwarder logs."""
    dhe = ciphers.startswith("DHE")
    front = old(ciphers, diffie_hellman=True) if dhe else old(ciphers)
    return Case(name, what, client, front=front, keys="front", **more)


CHANGES = {
    "inside": "the key log is inside, as editcap puts it",
    "missing-key": "the key log lacks one connection",
    "loss": "one segment is missing",
    "premaster": "the key log has `RSA` lines, with pre-master secrets",
}


def changed(name: str, change: str, of: str) -> Case:
    """A case that is made of another one's capture."""
    client = {"franz": "franz-go", "rsa": "librdkafka"}
    whose = of.partition("-")[2]
    return Case(name, CHANGES[change], client.get(whose, whose), change=change, of=of)


CASES = {
    case.name: case
    for case in (
        # TLS 1.3, the broker's own TLS.
        Case("tls13-java", "kafka-clients 4.4.0", JAVA),
        Case("tls13-java-39", "kafka-clients 3.9.2", JAVA_39),
        Case("tls13-librdkafka", "librdkafka", "librdkafka", keys="broker"),
        Case("tls13-kafka-python", "kafka-python", "kafka-python"),
        Case("tls13-aiokafka", "aiokafka", "aiokafka"),
        Case("tls13-franz", "franz-go", "franz-go"),
        Case("tls13-kafkajs", "kafkajs", "kafkajs"),
        Case("tls13-mutual", MUTUAL, "kafkajs", "SSL"),
        Case("tls13-mutual-java", MUTUAL, JAVA, "SSL"),
        Case("tls13-sasl", SCRAM, "aiokafka", "SASL_SSL", settings=ALICE),
        Case("tls13-sasl-java", SCRAM, JAVA, "SASL_SSL", settings=ALICE),
        # TLS 1.2, the broker's own TLS.
        Case("tls12-java", "kafka-clients 2.4.1: lines with session ids", JAVA_24),
        Case("tls12-java-44", "kafka-clients 4.4.0", JAVA, settings=JAVA_12),
        Case("tls12-librdkafka", "librdkafka", "librdkafka", "TLS12", keys="broker"),
        Case("tls12-kafka-python", "kafka-python", "kafka-python", "TLS12"),
        Case("tls12-aiokafka", "aiokafka", "aiokafka", "TLS12"),
        Case("tls12-franz", "franz-go", "franz-go", "TLS12"),
        Case("tls12-kafkajs", "kafkajs", "kafkajs", "TLS12"),
        Case("tls12-mutual", MUTUAL, "librdkafka", "SSL12", keys="broker"),
        Case("tls12-mutual-java", MUTUAL, JAVA_24, "SSL"),
        Case("tls12-sasl", SCRAM, JAVA_39, "SASL_SSL", settings=ALICE | JAVA_12),
        # Resumption.
        Case(
            "tls12-session-ids",
            BY_ID,
            JAVA,
            front=old("ECDHE+AESGCM", tickets=False),
            settings=JAVA_12,
        ),
        Case("tls12-tickets", BY_TICKET, "franz-go", front=GCM_12, settings=RESUME),
        Case("tls13-psk", BY_PSK, "franz-go", front=new(), settings=RESUME),
        # Key updates.
        Case(
            "tls13-keyupdate-client",
            "a Java producer with jdk.tls.keyLimits of 1 KB",
            JAVA,
            settings=SMALL_JAVA,
            security=f"jdk.tls.keyLimits={KEY_LIMITS}",
            step=write_much,
        ),
        Case(
            "tls13-keyupdate-broker",
            LIMITED,
            "librdkafka",
            keys="broker",
            settings=SMALL_LIBRDKAFKA,
            limits=KEY_LIMITS,
            step=write_and_read_much,
        ),
        Case(
            "tls13-keyupdate-both",
            f"{LIMITED} and a client that is Java, too",
            JAVA,
            settings=SMALL_JAVA,
            limits=KEY_LIMITS,
        ),
        Case("tls13-keyupdate-franz", "", "franz-go", limits=KEY_LIMITS, step=write_and_read_much),
        # TLS 1.3 in front of a plain listener.
        Case("tls13-chacha20", "", "librdkafka", front=new(CHACHA20), keys="front"),
        Case("tls13-aes128", "", "kafkajs", front=new("TLS_AES_128_GCM_SHA256")),
        Case("tls13-ccm", "", "aiokafka", front=new(CCM), openssl={"Ciphersuites": CCM}),
        Case("tls13-retry", RETRY, "franz-go", front=new(Groups="P-384")),
        Case("tls13-retry-java", RETRY, JAVA, front=new(Groups="P-521")),
        Case("tls13-padding", PADDED, JAVA, front=new(RecordPadding="512")),
        # Suites of TLS 1.2 in front of a plain listener.
        Case("tls12-chacha20", "", "franz-go", front=old("ECDHE+CHACHA20")),
        suite("tls12-cbc-sha1-mte", JAVA, "ECDHE-RSA-AES128-SHA", settings=JAVA_12),
        suite("tls12-cbc-sha256-mte", JAVA_24, "ECDHE-RSA-AES128-SHA256"),
        suite("tls12-cbc-sha384-mte", JAVA, "ECDHE-RSA-AES256-SHA384", settings=JAVA_12),
        suite("tls12-cbc-sha1-etm", "librdkafka", "ECDHE-RSA-AES256-SHA"),
        suite("tls12-cbc-sha256-etm", "aiokafka", "ECDHE-RSA-AES128-SHA256"),
        suite("tls12-cbc-sha384-etm", "librdkafka", "ECDHE-RSA-AES256-SHA384"),
        suite("tls12-ccm", "librdkafka", "DHE-RSA-AES256-CCM", settings=ANY_SUITE),
        suite("tls12-ccm8", "librdkafka", "AES128-CCM8", settings=ANY_SUITE),
        suite("tls12-dhe", JAVA, "DHE-RSA-AES128-GCM-SHA256", settings=JAVA_12),
        suite("tls12-rsa", "librdkafka", "AES256-GCM-SHA384", RSA),
        suite("tls12-rsa-cbc", JAVA_24, "AES128-SHA", f"{RSA}, {RSA_CBC}", security=OLD_RSA),
        Case(
            "tls12-renegotiation",
            AGAIN,
            "franz-go",
            front=old("ECDHE+AESGCM", renegotiate_after=900),
            settings={"renegotiate": "yes"},
        ),
        Case(
            "tls12-renegotiation-cbc",
            AGAIN,
            "librdkafka",
            front=old("ECDHE-RSA-AES128-SHA256", renegotiate_after=900),
            keys="front",
        ),
        # Captures that are not whole.
        Case("tls13-midstream", MIDSTREAM, JAVA, step=begin_between),
        Case("tls12-midstream", MIDSTREAM, JAVA, settings=JAVA_12, step=begin_between),
        changed("tls13-dsb", "inside", "tls13-librdkafka"),
        changed("tls13-missing-key", "missing-key", "tls13-kafkajs"),
        changed("tls13-loss", "loss", "tls13-franz"),
        changed("tls12-loss", "loss", "tls12-kafkajs"),
        changed("tls12-rsa-premaster", "premaster", "tls12-rsa"),
        # Handshakes that fail.
        failing("failed13-expired", EXPIRED, JAVA, new()),
        failing("failed12-expired", EXPIRED, JAVA_24, GCM_12),
        failing("failed13-expired-librdkafka", EXPIRED, "librdkafka", new()),
        failing("failed13-name", OTHER_NAME, JAVA, new()),
        failing("failed12-name", OTHER_NAME, "librdkafka", GCM_12),
        failing("failed13-issuer", STRANGER, "librdkafka", new()),
        failing("failed12-issuer", STRANGER, JAVA_24, GCM_12),
        failing("failed13-no-certificate", MISSING, JAVA, listener="SSL", settings={"cert": ""}),
        failing("failed12-no-certificate", MISSING, JAVA_24, listener="SSL", settings={"cert": ""}),
        failing("failed-version", VERSION, JAVA_24, new()),
        failing("failed-suite", SUITE, JAVA, old("AES128-CCM8"), "front", settings=JAVA_12),
        failing("failed-plain-to-tls", PLAIN_TO_TLS, "librdkafka", None, "broker", settings=NO_CA),
        failing("failed-tls-to-plain", TLS_TO_PLAIN, JAVA, listener="PLAINTEXT"),
    )
}


def environment(case: Case, keys: Path, folder: Path) -> dict[str, str]:
    """With which a client writes its key log."""
    kind = CLIENT_LIST[case.client].kind
    if kind == "java":
        options = [f"-javaagent:{agent()}={keys}"] if case.keys == "client" else []
        if case.security:
            path = folder / "client.security"
            path.write_text(case.security + "\n")
            options.append(f"-Djava.security.properties={path}")
        return {"JAVA_TOOL_OPTIONS": " ".join(options)} if options else {}
    told = {}
    if case.openssl:
        told["OPENSSL_CONF"] = str(configuration(folder / "client.cnf", case.openssl))
    if case.keys == "client" and kind == "js":
        told["NODE_OPTIONS"] = f"--tls-keylog={keys}"
    elif case.keys == "client":
        told["SSLKEYLOGFILE"] = str(keys)
    return told


def make(case: Case, cluster: TlsCluster, folder: Path) -> Made:
    """Run a case that is not made of another."""
    folder.mkdir(parents=True, exist_ok=True)
    topic = f"tls.{case.name}"
    make_topics(cluster, topic)
    capture, keys = folder / f"{case.name}.pcap", folder / f"{case.name}.keys"
    keys.touch(0o600)
    logged = cluster.keys.stat().st_size if cluster.keys.exists() else 0
    settings = {"client": case.name, "ca": str(cluster.authority.certificate)}
    if case.listener in ("SSL", "SSL12"):
        settings["cert"] = str(cluster.authority.issue("client", "127.0.0.1"))
    steps: list[dict[str, Any]] = []
    with ExitStack() as stack:
        if case.front is None:
            port, forwarder = cluster.ports(case.listener)[0], None
        else:
            port = cluster.front_port
            certificate = _certificate(cluster.authority, case.certificate)
            behind = cluster.ports("BEHIND")[0]
            shutil.copy(certificate, folder / f"{case.name}.pem")
            made = Forwarder(case.front, certificate, behind, folder, listen=port)
            forwarder = stack.enter_context(made)
        settings |= {"bootstrap": f"127.0.0.1:{port}", **case.settings}
        settings = {name: value for name, value in settings.items() if value}
        capturing = stack.enter_context(ExitStack())

        def start() -> None:
            capturing.enter_context(sniff(capture, [port]))

        client = CLIENT_LIST[case.client]
        log = folder / f"{case.name}.log"
        told = environment(case, keys, folder)
        late = case.step is begin_between
        if not late:
            start()
        with Driver(client, log, settings, told) as driver:
            (case.step or write_and_read)(Run(case, driver, topic, start, steps))
        capturing.close()
        if forwarder is not None and case.keys == "front":
            shutil.copy(forwarder.keys, keys)
        if case.keys == "broker":
            keys.write_bytes(cluster.keys.read_bytes()[logged:])
    return Made(capture, keys, truth(case, capture, keys, [port], steps))


def _certificate(authority: Authority, which: str) -> Path:
    if which == "expired":
        return authority.issue("expired", "127.0.0.1", until=timedelta(days=-3))
    if which == "other-name":
        return authority.issue("other", "192.0.2.1")
    if which == "stranger":
        folder = authority.folder / "stranger"
        folder.mkdir(exist_ok=True)
        return Authority(folder).issue("broker", "127.0.0.1")
    return authority.issue("broker", "127.0.0.1")


class _Page(http.server.BaseHTTPRequestHandler):
    """Answers everything with a few words."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"hello\n")

    def log_message(self, *what: object) -> None:
        """Nothing: tests print no access log."""


def https(folder: Path) -> Made:
    """Another service than Kafka on a port with TLS."""
    name = "tls13-https"
    capture, keys = folder / f"{name}.pcap", folder / f"{name}.keys"
    own = folder / "web"
    own.mkdir()
    authority = Authority(own)
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(authority.issue("web", "127.0.0.1"))
    theirs = ssl.create_default_context(cafile=authority.certificate)
    theirs.keylog_filename = str(keys)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page) as web:
        web.socket = ours.wrap_socket(web.socket, server_side=True)
        port = web.server_address[1]
        threading.Thread(target=web.serve_forever, daemon=True).start()
        with sniff(capture, [port]):
            for _ in range(2):
                url = f"https://127.0.0.1:{port}/"
                with urllib.request.urlopen(url, context=theirs, timeout=20) as page:
                    assert page.read()
        web.shutdown()
    case = Case(name, "HTTP inside TLS: another service than Kafka", "urllib")
    return Made(capture, keys, truth(case, capture, keys, [port], []))


def early_data(folder: Path) -> Made:
    """A request that is sent with the ClientHello, and one behind the handshake."""
    name = "tls13-early-data"
    capture, keys = folder / f"{name}.pcap", folder / f"{name}.keys"
    own = folder / "early"
    own.mkdir()
    certificate = str(Authority(own).issue("early", "127.0.0.1"))
    (port,) = free_ports(1)
    first, second = own / "first", request("Metadata", 12, 2, "early", topics=None)
    first.write_bytes(request("ApiVersions", 2, 1, "early"))
    server = ["openssl", "s_server", "-quiet", "-early_data", "-accept", f"127.0.0.1:{port}"]
    client = ["openssl", "s_client", "-nocommands", "-connect", f"127.0.0.1:{port}"]
    session = str(own / "session")
    ends = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with (
        subprocess.Popen([*server, "-cert", certificate], **ends) as serving,  # type: ignore[call-overload]
        ExitStack() as stack,
    ):
        until(lambda: listens(port))
        stack.enter_context(sniff(capture, [port]))
        for options, data in (
            (["-sess_out", session], b""),
            (["-sess_in", session, "-early_data", str(first)], second),
        ):
            command = [*client, "-keylogfile", str(keys), *options]
            with subprocess.Popen(command, **ends) as asking:  # type: ignore[call-overload]
                asking.stdin.write(data)
                asking.stdin.flush()
                time.sleep(0.5)  # tickets come, without which there is no early data
                asking.stdin.close()  # an end in order, else the server forgets the session
                asking.wait(20)
        stack.close()
        serving.terminate()
    case = Case(name, "a request as early data; nobody answers", "openssl s_client")
    return Made(capture, keys, truth(case, capture, keys, [port], []))


SPECIAL = {"tls13-https": https, "tls13-early-data": early_data}
"""Captures without a broker."""


class Maker:
    """Makes captures by name, each once; a context manager of the brokers that it needs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority = Authority(folder)
        self._stack = ExitStack()
        self._clusters: dict[str, TlsCluster] = {}
        self._made: dict[str, Made] = {}

    def __enter__(self) -> Maker:
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def of(self, name: str) -> Made:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Made:
        if name in SPECIAL:
            return SPECIAL[name](self._folder)
        case = CASES[name]
        if case.of:
            return derive(case, self.of(case.of), self._folder)
        if case.limits not in self._clusters:
            cluster = TlsCluster(self._authority, free_ports(1)[0], case.limits)
            self._clusters[case.limits] = self._stack.enter_context(cluster)
        return make(case, self._clusters[case.limits], self._folder / name)


LOGGERS = {
    "client": "client",
    "broker": "broker's JVM, agent extract-tls-secrets",
    "front": "OpenSSL",
}


def truth(
    case: Case, capture: Path, keys: Path, ports: list[int], steps: list[dict[str, Any]]
) -> dict[str, Any]:
    """What is known of a capture."""
    found = tls_truth.connections(capture, keys, ports)
    told = {
        "capture": capture.name,
        "keys": keys.name,
        "what": case.what,
        "client": case.client,
        "ports": ports,
        "key_log": LOGGERS[case.keys],
        "tls": tls_truth.summary(found),
        "tshark": {
            "tool": tls_truth.tool(),
            "connections_decrypted": sum(c["decrypted"] for c in found),
            "app_bytes": sum(sum(c["app_bytes"].values()) for c in found),
        },
        "tls_connections": found,
        "steps": steps,
    }
    if case.cause:
        told["failed"] = case.cause
    return told


def derive(case: Case, of: Made, folder: Path) -> Made:
    """Make a capture of another one, as `change` says."""
    capture = folder / f"{case.name}.pcap"
    keys = folder / f"{case.name}.keys"
    shutil.copy(of.capture, capture)
    shutil.copy(of.keys, keys)
    ports, steps = of.truth["ports"], of.truth["steps"]
    if case.change == "inside":
        capture.unlink()
        capture = capture.with_suffix(".pcapng")
        secrets = f"tls,{keys}"
        run("editcap", "--inject-secrets", secrets, of.capture, capture)
    elif case.change == "missing-key":
        lost = _busiest(of)["client_random"]
        lines = keys.read_text().splitlines(keepends=True)
        keys.write_text("".join(line for line in lines if lost not in line.lower()))
        steps = []  # which records are left, nobody says
    elif case.change == "premaster":
        keys.write_text("".join(_premasters(of, folder / case.of / f"{case.of}.pem")))
    told = truth(case, capture, keys, ports, steps) | {"of": of.capture.name}
    if case.change == "inside":
        told |= {"keys": None, "keys_inside": True}
    if case.change == "loss":
        busiest = _busiest(of)
        lost_bytes = _lose(capture, busiest["client_port"], OVERHEAD[busiest["version"]])
        told = truth(case, capture, keys, ports, steps) | {"of": of.capture.name}
        whole: int = of.truth["tshark"]["app_bytes"]
        told["best_possible_app_bytes"] = whole - lost_bytes
        told["expected_without_loss"] = of.truth["tls_connections"]
    told["key_log"] = of.truth["key_log"]
    return Made(capture, keys, told)


def _busiest(made: Made) -> dict[str, Any]:
    """The connection on which most was sent to the client."""
    found: list[dict[str, Any]] = made.truth["tls_connections"]
    return max(found, key=lambda c: c["app_bytes"]["server_to_client"])


def _premasters(made: Made, certificate: Path) -> Iterator[str]:
    """Lines as old browsers wrote them: the first bytes of the encrypted secret, and the secret."""
    key = serialization.load_pem_private_key(certificate.read_bytes(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    for text in tls_truth.encrypted_premasters(made.capture, made.truth["ports"]):
        encrypted = bytes.fromhex(text)
        secret = key.decrypt(encrypted, padding.PKCS1v15())
        yield f"RSA {encrypted[:8].hex()} {secret.hex()}\n"


OVERHEAD = {"TLS 1.2": 24, "TLS 1.3": 17}
"""What AES-GCM adds to a plaintext: nonce and tag; kind and tag."""


def _lose(capture: Path, client: int, overhead: int) -> int:
    """Take the middle one of the packets with data to a client out; bytes of plaintext in it."""
    data = capture.read_bytes()
    packets, at = [], 24
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 8)
        packets.append(data[at : at + 16 + size])
        at += 16 + size
    full = [n for n, packet in enumerate(packets) if _application(packet, client)]
    lost = full[len(full) // 2]
    kept = b"".join(packets[:lost] + packets[lost + 1 :])
    capture.write_bytes(data[:24] + kept)
    payload, plain = _application(packets[lost], client), 0
    while payload:
        (size,) = struct.unpack_from(">H", payload, 3)
        payload, plain = payload[5 + size :], plain + size - overhead
    return plain


def _application(packet: bytes, client: int) -> bytes:
    """The payload of a packet to a port, when it begins with application data."""
    tcp = 16 + 14 + (packet[30] & 15) * 4
    payload = packet[tcp + (packet[tcp + 12] >> 4) * 4 :]
    to_client = struct.unpack_from(">H", packet, tcp + 2)[0] == client
    return payload if to_client and payload[:1] == b"\x17" else b""
