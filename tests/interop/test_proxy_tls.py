"""TLS on either leg, or both, with real clients and real brokers: certificates, passwords."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kafkascope.proxy.engine.tls import ClientTls, UpstreamTls
from tests.interop.brokers import USERS
from tests.interop.compare import differences
from tests.interop.drivers import CLIENT_LIST, Story, drive
from tests.interop.proxied import Proxied, SecuredCluster, checked, visitors
from tests.interop.scenarios import make_topics
from tests.kit.authority import Authority

pytestmark = pytest.mark.interop

PLAIN_TO_SASL_SSL = "plain to SASL_SSL"
SSL_TO_PLAIN = "SSL to plain"
SSL_TO_SSL = "SSL to SSL"
WAYS = (PLAIN_TO_SASL_SSL, SSL_TO_PLAIN, SSL_TO_SSL)
DIAGONAL = (
    (PLAIN_TO_SASL_SSL, "librdkafka"),
    (SSL_TO_PLAIN, "aiokafka"),
    (SSL_TO_SSL, "java-4.4.0"),
)
REST = tuple(
    (way, client)
    for way in WAYS
    for client in (*CLIENT_LIST,)
    if (way, client) not in DIAGONAL and client != "java-0.10.2.2"
)
ALICE = {"user": "alice", "password": USERS["alice"], "mechanism": "SCRAM-SHA-256"}


@pytest.mark.parametrize(
    ("way", "client"),
    [
        *(pytest.param(*pair, id="-".join(pair)) for pair in DIAGONAL),
        *(pytest.param(*pair, id="-".join(pair), marks=pytest.mark.soak) for pair in REST),
    ],
)
def test_tls_between_proxy_and_either_side(
    clusters: Callable[[str], SecuredCluster],
    authority: Authority,
    tmp_path: Path,
    way: str,
    client: str,
) -> None:
    cluster = clusters("4.4.0")
    topic = f"tls.{way.replace(' ', '-')}.{client}"
    make_topics(cluster, topic, copies=3)
    ours = authority.issue("client", "127.0.0.1")
    upstream = UpstreamTls(ca=authority.certificate, certificate=ours)
    towards_clients = ClientTls(certificate=ours, ca=authority.certificate)
    common: dict[str, str] = {}
    if way == PLAIN_TO_SASL_SSL:
        listener, options = "SASL_SSL", {"upstream_tls": upstream}
        common |= ALICE
    elif way == SSL_TO_PLAIN:
        # A generated certificate, by a CA of the proxy's own.
        listener = "SASL_PLAINTEXT"
        options = {"tls": ClientTls(), "ca_folder": tmp_path / "ca"}  # type: ignore[dict-item]
        common |= ALICE | {"ca": str(tmp_path / "ca" / "kafkascope-ca-cert.pem")}
    else:
        listener = "SSL"
        options = {"upstream_tls": upstream, "tls": towards_clients}  # type: ignore[dict-item]
        common |= {"ca": str(authority.certificate), "cert": str(ours)}
    story = Story()
    story.codec_of[topic] = "gzip"
    with (
        visitors(cluster.ports(listener)) as seen,
        Proxied(cluster, tmp_path / "recorded", (listener,), **options) as proxied,
        drive(client, tmp_path, proxied.bootstrap(listener), **common) as driver,
    ):
        story.add(driver.step("Produce", topic=topic, codec="gzip", count=60))
        story.add(driver.step("Consume", topic=topic, count=60, group=f"{topic}.group"))
    assert len(story.consumed) == 60
    assert seen.ports
    assert seen.ports <= proxied.own_ports(), "a client went past the proxy"
    assert list(differences(checked(proxied, story))) == []
