"""Scenarios of `make_findings`: troubles with TLS, SASL and rights."""

from __future__ import annotations

import socket
import ssl
from contextlib import closing

from confluent_kafka import KafkaException

from tests.interop.brokers import USERS, KRaftCluster
from tests.interop.make_findings_kit import PORT, SASL, Raw, producer, scenario, topics


@scenario(PORT, SASL)
def security(cluster: KRaftCluster) -> None:
    """TLS and HTTP to a plain port, no SASL, another mechanism and a wrong password."""
    for _ in range(2):
        with closing(socket.create_connection(("127.0.0.1", PORT))) as plain:
            context = ssl.create_default_context()
            try:
                context.wrap_socket(plain, server_hostname="localhost")
            except OSError:
                pass
    with closing(socket.create_connection(("127.0.0.1", PORT))) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        plain.settimeout(3)
        try:
            plain.recv(10)
        except OSError:
            pass
    good = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    where = f"127.0.0.1:{SASL}"
    ok = producer("right", where, sasl_username="alice", sasl_password=USERS["alice"], **good)
    ok.list_topics(timeout=10)
    with closing(Raw(SASL, "no-sasl")) as raw:
        raw.ask("ApiVersions", 2)
        raw.ask("Metadata", 8, topics=None)
    with closing(Raw(SASL, "wrong-mechanism")) as raw:
        raw.ask("SaslHandshake", 1, mechanism="GSSAPI")
    wrong = producer("wrong", where, sasl_username="alice", sasl_password="no", **good)
    try:
        wrong.list_topics(timeout=1)
    except KafkaException:
        pass


@scenario(SASL)
def denied(cluster: KRaftCluster) -> None:
    """A user without rights."""
    topics("secret")
    out = producer(
        "stranger", f"127.0.0.1:{SASL}", security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN", sasl_username="bob", sasl_password=USERS["bob"],
        message_timeout_ms=3000,
    )  # fmt: skip
    out.produce("secret", b"x")
    out.flush(5)


@scenario(SASL)
def plain_to_tls(cluster: KRaftCluster) -> None:
    """A client without TLS on a TLS listener."""
    for _ in range(2):
        with closing(Raw(SASL, "plain")) as raw:
            raw.ask("ApiVersions", 2)
