"""What a client is made to do while a capture runs. Each scenario adds what it did to a story."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.distribution import NEWEST
from tests.interop.brokers import USERS, Cluster
from tests.interop.drivers import Driver, Story

Scenario = Callable[[Driver, Story, Cluster], None]

# Topics that a client without admin calls finds in place.
PREPARED = ("none", "gzip", "snappy", "lz4", "zstd", "idem", "acks", "tx", "group", "sasl")


def prepare(cluster: Cluster, prefix: str, copies: int = 1) -> None:
    """Make the topics of one client, before the capture starts."""
    make_topics(cluster, *(f"{prefix}.{name}" for name in PREPARED), copies=copies)


def make_topics(cluster: Cluster, *names: str, copies: int = 1) -> None:
    """Topics of two partitions; not by way of the listeners whose visitors are counted."""
    # librdkafka learned of the brokers meanwhile, and let go of the one it asked; or a quorum that
    # has just started changed its leader, and nobody answers what the one before had accepted.
    passing = {KafkaError._DESTROY_BROKER, KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT}
    left = list(names)
    for attempt in range(5):
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap("INTERNAL")})
        wanted = [NewTopic(name, 2, copies, config={"retention.ms": "-1"}) for name in left]
        again = []
        asked = admin.create_topics(wanted, operation_timeout=15, request_timeout=20)
        for name, done in asked.items():
            try:
                done.result(60)
            except KafkaException as error:
                code = error.args[0].code()
                if code in passing and attempt < 4:
                    again.append(name)
                elif code != KafkaError.TOPIC_ALREADY_EXISTS or not attempt:
                    raise
        if not again:
            return
        left = again


def codecs(driver: Driver, story: Story, cluster: Cluster) -> None:
    """Produce with each codec and kind of acknowledgement, read with and without a group."""
    name = driver.client.name
    if driver.client.admin:
        driver.step("Administer", topics=f"{name}.made", client=f"{name}.admin")
    for codec in driver.client.codecs:
        topic = f"{name}.{codec}"
        story.codec_of[topic] = codec
        story.add(driver.step("Produce", topic=topic, codec=codec, count=story.count))
        # A group for every other topic: joining takes time.
        group = {"group": f"{topic}.group"} if codec in {"none", "zstd"} else {}
        story.add(driver.step("Consume", topic=topic, count=story.count, **group))
    topic = f"{name}.acks"
    story.codec_of[topic] = "none"
    story.add(driver.step("Produce", topic=topic, acks=0, count=5))
    story.add(driver.step("Produce", topic=topic, acks=1, first=5, count=15))
    story.add(driver.step("Consume", topic=topic, count=20))
    if driver.client.idempotent:
        topic = f"{name}.idem"
        codec = "lz4" if "lz4" in driver.client.codecs else "none"
        story.codec_of[topic] = codec
        story.add(driver.step("Produce", topic=topic, codec=codec, idempotent="true", count=30))
    if driver.client.admin:
        asked = {"describe": f"{name}.none", "group": f"{name}.none.group"}
        driver.step("Administer", client=f"{name}.admin", **asked)


def rebalance(driver: Driver, story: Story, cluster: Cluster) -> None:
    """A group that a second member joins and leaves."""
    topic = f"{driver.client.name}.group"
    story.codec_of[topic] = "none"
    story.add(driver.step("Produce", topic=topic, count=story.count))
    held = driver.step("Rebalance", topic=topic, group=f"{topic}.group")
    story.add(held)


def transactions(driver: Driver, story: Story, cluster: Cluster) -> None:
    """Commit, abort, offsets in a transaction; read what was committed."""
    if not driver.client.transactions:
        return
    name = driver.client.name
    source, topic = f"{name}.none", f"{name}.tx"
    story.codec_of[topic] = "none"
    if source not in story.codec_of:
        story.codec_of[source] = "none"
        story.add(driver.step("Produce", topic=source, count=story.count))
    tx = {"topic": topic, "source": source, "group": f"{name}.txgroup", "id": f"{name}.txid"}
    told = driver.step("Transact", **tx)
    story.add(told)
    seen = driver.step(
        "Consume",
        topic=topic,
        count=len(told["produced"]),
        group=f"{name}.committed",
        isolation="read_committed",
    )
    story.add(seen)
    assert {r[2] for r in seen["consumed"]} <= {r[2] for r in told["produced"]}


def sasl(driver: Driver, story: Story, cluster: Cluster) -> None:
    """PLAIN and SCRAM-SHA-256: right passwords, then a wrong one."""
    topic = f"{driver.client.name}.sasl"
    story.codec_of[topic] = "none"
    bootstrap = cluster.bootstrap("SASL_PLAINTEXT")
    mechanisms = ("PLAIN", "SCRAM-SHA-256") if driver.client.scram else ("PLAIN",)
    for turn, mechanism in enumerate(mechanisms):
        who = {
            "bootstrap": bootstrap,
            "user": "alice",
            "password": USERS["alice"],
            "mechanism": mechanism,
        }
        story.add(driver.step("Produce", topic=topic, first=10 * turn, count=10, **who))
    story.add(driver.step("Consume", topic=topic, count=10 * len(mechanisms), **who))


def mistakes(driver: Driver, story: Story, cluster: Cluster) -> None:
    """A wrong password, a topic that exists already, one that does not."""
    wrong = {"user": "alice", "password": "wrong", "mechanism": "SCRAM-SHA-256"}
    if driver.client.kind == "confluent":  # else it tries again for minutes
        wrong |= {"conf.message.timeout.ms": "1000", "conf.reconnect.backoff.ms": "600"}
    sasl_port = {"bootstrap": cluster.bootstrap("SASL_PLAINTEXT")}
    topic = f"{driver.client.name}.sasl"
    driver.step("Produce", topic=topic, count=1, may_fail=True, **wrong, **sasl_port)
    driver.step("Administer", topics=topic, may_fail=True)
    driver.step("Administer", describe="no.such.topic", may_fail=True)


def administration(driver: Driver, story: Story, cluster: Cluster) -> dict[str, str]:
    """Every call of the newest Admin client and the group protocols; the calls' results."""
    topic = f"{driver.client.name}.sweep"
    told = driver.step("Sweep", topic=topic, client="sweep")
    story.add(told)
    story.codec_of[topic] = "none"
    who = {"bootstrap": cluster.bootstrap("SASL_PLAINTEXT"), "user": "alice"}
    driver.step("Tokens", password=USERS["alice"], mechanism="SCRAM-SHA-256", **who)
    new = f"{topic}.new"
    story.codec_of[new] = "none"
    story.add(driver.step("Produce", topic=new, count=story.count))
    story.add(driver.step("Rebalance", topic=new, group=f"{new}.group", protocol="consumer"))
    driver.step("Administer", group=f"{new}.group", client="sweep.admin")
    if cluster.version.startswith("4."):
        share = {"topic": new, "group": f"{new}.share", "count": story.count}
        story.add(driver.step("Share", **share))
    calls: dict[str, str] = told["calls"]
    return calls


def everything(driver: Driver, story: Story, cluster: Cluster) -> None:
    """All of the above."""
    codecs(driver, story, cluster)
    rebalance(driver, story, cluster)
    transactions(driver, story, cluster)
    sasl(driver, story, cluster)


DIAGONAL = (
    ("3.9.2", "java-0.10.2.2"),
    ("3.9.2", "java-1.1.1"),
    ("3.9.2", "kafka-python"),
    ("3.9.2", "java-3.9.2"),
    ("4.4.0", "java-4.4.0"),
    ("4.4.0", "librdkafka"),
    ("4.4.0", "aiokafka"),
)


def marks(broker: str) -> tuple[pytest.MarkDecorator, ...]:
    """Mark the clients of the newest broker, three libraries, for `make test`."""
    return (pytest.mark.broker,) if broker == NEWEST else ()
