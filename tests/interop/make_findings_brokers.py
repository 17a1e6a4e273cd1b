"""Scenarios of `make_findings`: brokers and leaders in trouble, addresses, quotas, rights."""

import socket
import ssl
import struct
import time
from contextlib import suppress

from confluent_kafka import KafkaException, TopicPartition

from tests.interop import make_findings_kit as kit
from tests.interop.brokers import USERS, KRaftCluster


@kit.scenario(kit.PROXY, kit.PROXY + 1)
def stale_leader(cluster: KRaftCluster) -> None:
    """A client that repeats a Fetch after NOT_LEADER_OR_FOLLOWER and never asks for metadata."""
    kit.topics("leaders")
    fetch = "api == Fetch -> error NOT_LEADER_OR_FOLLOWER first 6"
    with kit.proxied(fetch), kit.Raw(kit.PROXY, "stubborn") as raw:
        asked = [{"topic": "leaders", "partitions": [{"partition_max_bytes": 1000}]}]
        for _ in range(8):
            raw.ask("Fetch", 4, replica_id=-1, max_wait_ms=10, min_bytes=0, topics=asked)
            time.sleep(0.05)


@kit.scenario(kit.PROXY, kit.PROXY + 1)
def leader_moved(cluster: KRaftCluster) -> None:
    """A producer that meets one such error and asks for metadata."""
    kit.topics("moved")
    with kit.proxied("api == Produce -> error NOT_LEADER_OR_FOLLOWER once") as there:
        kit.write(kit.producer("careful", there), "moved", b"x")


@kit.scenario(kit.PROXY, kit.PROXY + 1)
def lost_answers(cluster: KRaftCluster) -> None:
    """A producer without idempotence whose first answer is lost: it gives up and sends again."""
    kit.topics("lost")
    with kit.proxied("api == Produce -> drop on response once") as there:
        patience = {"socket_timeout_ms": 1500, "message_timeout_ms": 15000}
        kit.write(kit.producer("impatient", there, acks=1, **patience), "lost", b"once or twice")


@kit.scenario()
def stopped_broker(cluster: KRaftCluster) -> None:
    """A broker that stands still for some seconds: slow answers, and one after its client left."""
    kit.topics("stopped")
    raws = [kit.Raw(kit.PORT, "patient") for _ in range(3)]
    late = kit.Raw(kit.PORT, "hasty")
    for raw in (*raws, late):
        raw.ask("ApiVersions", 2)
    with kit.standing(cluster):
        time.sleep(0.5)  # until all of its threads stand
        asked = {"topics": [{"name": "stopped"}], "allow_auto_topic_creation": False}
        for raw in (*raws, late):
            raw.tell("Metadata", 8, **asked)
        time.sleep(1.5)
        late.socket.shutdown(socket.SHUT_WR)
        time.sleep(0.5)
    for raw in (*raws, late):
        raw.answer()
        raw.close()


@kit.scenario()
def slow_reads(cluster: KRaftCluster) -> None:
    """A reader of a backlog whose broker stands still for three seconds; then long polls of five
    seconds at the end of the log, which a record ends every 1.7 s."""
    kit.topics("backlog")
    out = kit.producer("fill", kit.INSIDE)
    kit.write(out, "backlog", *(b"record %d" % number for number in range(60)))
    few = {"fetch_message_max_bytes": 400, "queued_min_messages": 1, "fetch_queue_backoff_ms": 50}
    client = kit.consumer("slow-reader", "slow-readers", fetch_wait_max_ms=5000, **few)
    client.assign([TopicPartition("backlog", 0, 0)])
    kit.read(client, 30)
    with kit.standing(cluster):
        kit.read(client, 30, seconds=3)
    kit.read(client, 30, seconds=3)
    for _ in range(4):
        time.sleep(1.7)
        kit.write(out, "backlog", b"late")
        kit.read(client, 1)
    client.close()


@kit.scenario(kit.PROXY, kit.PROXY + 1)
def black_hole(cluster: KRaftCluster) -> None:
    """A request that stays without an answer for longer than clients wait; the capture ends before
    the connections do."""
    kit.UNTIL_LATER.enter_context(kit.proxied("api == Metadata -> black-hole"))
    raw = kit.UNTIL_LATER.enter_context(kit.Raw(kit.PROXY, "waiting"))
    raw.ask("ApiVersions", 2)
    raw.tell("Metadata", 8, topics=None)
    other = kit.UNTIL_LATER.enter_context(kit.Raw(kit.PROXY, "witness"))
    for _ in range(8):
        other.ask("ApiVersions", 2)
        time.sleep(4)
    other.ask("ApiVersions", 2)


@kit.scenario()
def unknown_topic(cluster: KRaftCluster) -> None:
    """A client that asks for a misspelt topic again and again on one connection."""
    with kit.Raw(kit.PORT, "misspelt") as raw:
        for _ in range(40):
            raw.ask("Metadata", 8, topics=[{"name": "ordres"}], allow_auto_topic_creation=False)
            time.sleep(0.05)


@kit.scenario()
def hot_partition(cluster: KRaftCluster) -> None:
    """Four partitions, one key."""
    kit.topics("hot", partitions=4)
    out = kit.producer("one-key", linger_ms=50, compression_type="zstd")
    for number in range(1500):
        out.produce("hot", key=b"same" if number % 10 else b"%d" % number, value=b"x")
    out.flush(20)


@kit.scenario()
def far_racks(cluster: KRaftCluster) -> None:
    """A consumer that says its rack, and a broker in another one."""
    kit.topics("racks")
    kit.fill("racks", 5)
    kit.read_from("racks", 0, 5, kit.consumer("in-b", "rack-group", client_rack="b"))


@kit.scenario()
def short_connections(cluster: KRaftCluster) -> None:
    """A client that connects for each question."""
    for _ in range(104):
        with kit.Raw(kit.PORT, "restless") as raw:
            raw.ask("ApiVersions", 2)


@kit.scenario()
def old_versions(cluster: KRaftCluster) -> None:
    """A client that never asks for versions and uses old ones; one that uses a version from the
    future."""
    kit.topics("old")
    with kit.Raw(kit.PORT, "legacy") as raw:
        raw.ask("Metadata", 0, topics=[])
    with kit.Raw(kit.PORT, "future") as raw:
        raw.ask("ApiVersions", 2)
        raw.socket.sendall(
            struct.pack(">ihhih6s", 16, 2, 0, 7, 6, b"future")  # ListOffsets 0 is gone in 4.0
        )
        raw.answer()


@kit.scenario(9192)
def wrong_answers(cluster: KRaftCluster) -> None:
    """A server (not a broker: none does this) that answers with an id that nobody asked for."""
    server = socket.create_server(("127.0.0.1", 9192))
    with server, kit.Raw(9192, "confused") as raw:
        there, _ = server.accept()
        with there:
            for number in (1, 4702):
                raw.tell("ApiVersions", 2)
                there.recv(1000)
                there.sendall(struct.pack(">iihi", 14, number, 0, 0) + bytes(4))
            time.sleep(0.3)


@kit.scenario()
def throttled(cluster: KRaftCluster) -> None:
    """A producer with a quota far below what it sends."""
    kit.topics("quota")
    entity = [{"entity_type": "client-id", "entity_name": "greedy"}]
    limits = [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}]
    with kit.Raw(9094, "admin") as raw:
        entries = [{"entity": entity, "ops": limits}]
        raw.ask("AlterClientQuotas", 0, entries=entries, validate_only=False)
    time.sleep(1)
    kit.write(kit.producer("greedy", compression_type="none"), "quota", *[bytes(3000)] * 6)


@kit.scenario()
def healthy(cluster: KRaftCluster) -> None:
    """Nothing is wrong: a producer, a group that commits, a transaction."""
    kit.topics("well", partitions=2)
    out = kit.producer("well-producer", enable_idempotence=True, linger_ms=20)
    for number in range(40):
        out.produce("well", key=b"%d" % number, value=b"v")
    out.flush(20)
    client = kit.consumer("well-consumer", "well-group")
    client.subscribe(["well"])
    kit.read(client, 40)
    client.commit(asynchronous=False)
    client.close()


@kit.scenario(kit.PORT, 9)
def wrong_address(cluster: KRaftCluster) -> None:
    """A broker that advertises a port on which nobody listens."""
    kit.write(kit.producer("misled", message_timeout_ms=4000), "anything", b"x", seconds=6)


@kit.scenario(kit.PORT, kit.SASL)
def security(cluster: KRaftCluster) -> None:
    """TLS and HTTP to a plain port, no SASL, another mechanism and a wrong password."""
    for _ in range(2):
        with kit.Raw(kit.PORT) as plain, suppress(OSError):
            context = ssl.create_default_context()
            context.wrap_socket(plain.socket, server_hostname="localhost")
    with kit.Raw(kit.PORT) as plain:
        plain.socket.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        plain.answer()
    good = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    where = f"127.0.0.1:{kit.SASL}"
    ok = kit.producer("right", where, sasl_username="alice", sasl_password=USERS["alice"], **good)
    ok.list_topics(timeout=10)
    with kit.Raw(kit.SASL, "no-sasl") as raw:
        raw.ask("ApiVersions", 2)
        raw.ask("Metadata", 8, topics=None)
    with kit.Raw(kit.SASL, "wrong-mechanism") as raw:
        raw.ask("SaslHandshake", 1, mechanism="GSSAPI")
    wrong = kit.producer("wrong", where, sasl_username="alice", sasl_password="no", **good)
    with suppress(KafkaException):
        wrong.list_topics(timeout=1)


@kit.scenario(kit.SASL)
def denied(cluster: KRaftCluster) -> None:
    """A user without rights."""
    kit.topics("secret")
    out = kit.producer(
        "stranger",
        f"127.0.0.1:{kit.SASL}",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username="bob",
        sasl_password=USERS["bob"],
        message_timeout_ms=3000,
    )
    kit.write(out, "secret", b"x", seconds=5)


@kit.scenario(kit.SASL)
def plain_to_tls(cluster: KRaftCluster) -> None:
    """A client without TLS on a TLS listener."""
    for _ in range(2):
        with kit.Raw(kit.SASL, "plain") as raw:
            raw.ask("ApiVersions", 2)
