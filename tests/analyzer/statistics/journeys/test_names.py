"""Which client ids are one application."""

from typing import Any

import pytest

from kafkascope.analyzer.identity import Identity
from kafkascope.analyzer.statistics.journeys.names import (
    ClientUse,
    applications,
    is_random,
    parts_of,
)

JAVA = "apache-kafka-java 4.0.0"
RD = "librdkafka 2.3.0"
UUID = "335a67f5-1cfa-4b78-9a97-38a44b25d23b"


def use(client_id: str | None, software: str = "", user: str = "", **seen: Any) -> ClientUse:
    host = seen.pop("host", "10.0.0.4")
    sets = {name: set(value.split()) for name, value in seen.items()}
    return ClientUse(Identity(client_id, host, software, user), **sets)


def names(*uses: ClientUse) -> dict[str, list[str]]:
    return {name: sorted(named.client_ids) for name, named in applications(uses).items()}


@pytest.mark.parametrize(
    ("ids", "name"),
    [
        (("billing-1", "billing-2", "billing-3"), "billing"),
        (("loader-3e1dc90b", "loader-ca092af0"), "loader"),
        (("pay-7d9f8b6c5-x2k4q", "pay-7d9f8b6c5-zzk4q"), "pay"),
        ((f"web-{UUID}", "web-9c1185a5-c5e9-4c54-8b1f-0f1c2d3e4f5a"), "web"),
        (("billing@10.0.0.1", "billing@10.0.0.2"), "billing"),
        (("worker1", "worker2"), "worker"),
        (("web@ip-10-1-2-3:4711", "web@ip-10-1-9-7:812"), "web"),
        (("web-ip-10-1-2-3.ec2.internal", "web-ip-10-9-2-3.eu-west-1.compute.internal"), "web"),
        (("pay-7d9f8b6c5-qwxzt", "pay-7d9f8b6c5-x2k4q"), "pay"),
        (("cart-01ARZ3NDEKTSV4RRFFQ69G5FAV", "cart-m7qz", "cart-k3x9"), "cart"),
        (("eu-1-loader", "eu-2-loader"), "eu-*-loader"),
        (("tracker-k3x9q",), "tracker"),
        ((f"count-{UUID}-StreamThread-1-consumer", f"count-{UUID}-admin"), "count"),
        (("connector-consumer-sink-0", "connector-consumer-sink-1"), "sink"),
        (("connect-etl-configs", "connect-etl-statuses"), "connect-etl"),
        (("a-mm2-a->b-configs", "a->b|MirrorSourceConnector-0|replication-consumer"),
         "MirrorMaker"),
        (("shop@web1 (github.com/segmentio/kafka-go)",), "shop"),
        (("ClickHouse-chi.0-1.events", "ClickHouse-chi.0-2.events"), "ClickHouse-chi.*.events"),
        (("ClickHouse-chi.0-1.events",), "ClickHouse-chi.0-1.events"),
    ],
)  # fmt: skip
def test_ids_that_differ_by_a_number_or_a_random_part_are_one(
    ids: tuple[str, ...], name: str
) -> None:
    assert names(*(use(each, reads="t") for each in ids)) == {name: sorted(ids)}


@pytest.mark.parametrize(
    "ids",
    [
        ("agent", "agent-java"),
        ("rollup", "legacy-rollup"),
        ("app-v1", "app-v2"),
        ("s3-loader", "http-loader"),
        ("notes", "badge"),
        ("https-proxy", "pgsql-proxy"),
    ],
)
def test_other_ids_are_not(ids: tuple[str, ...]) -> None:
    assert len(names(*(use(each, groups="g", reads="t") for each in ids))) == 2


@pytest.mark.parametrize("part", ["7f3a", "4678f48e9e", "k3x9q", "x2k4q", "deadbeef"])
def test_random_parts(part: str) -> None:
    assert is_random(part)
    assert parts_of(part) == ()


@pytest.mark.parametrize("part", ["java", "log4j", "http2", "feed", "orders", "k8s", "eu1", "web"])
def test_words(part: str) -> None:
    assert not is_random(part)


def test_roles_are_one_application_unless_one_reads_what_the_other_writes() -> None:
    camel = use("enrichConsumer", RD, reads="a"), use("enrichProducer", RD, writes="b")
    assert list(names(*camel)) == ["enrich"]
    reader, writer = use("enrich-consumer", RD, reads="a"), use("enrich-producer", RD, writes="b")
    assert names(reader, writer) == {"enrich": ["enrich-consumer", "enrich-producer"]}
    writer = use("enrich-producer", RD, writes="a")
    assert len(names(reader, writer)) == 2
    other = use("enrich-producer", JAVA, writes="b")
    assert len(names(reader, other)) == 2


def test_stages_of_a_chain_are_several() -> None:
    stages = [use(f"stage-{n}", reads=f"t{n}", writes=f"t{n + 1}") for n in (1, 2)]
    assert names(*stages) == {"stage-1": ["stage-1"], "stage-2": ["stage-2"]}


def test_default_ids_name_no_application() -> None:
    assert names(
        use("consumer-orders-1", JAVA, groups="orders", reads="o"),
        use("consumer-orders-2", JAVA, groups="orders", reads="o"),
        use("rdkafka", RD, groups="bill", reads="o"),
        use("rdkafka", RD, user="eve", writes="x"),
        use("sarama", host="10.0.0.9", writes="y"),
        use("producer-tx-1", JAVA, transactional_ids="tx-1", writes="z"),
        use("producer-tx-2", JAVA, transactional_ids="tx-2", writes="z"),
    ) == {
        "orders": ["consumer-orders-1", "consumer-orders-2"],
        "bill": ["rdkafka"],
        "eve": ["rdkafka"],
        "sarama": ["sarama"],
        "tx": ["producer-tx-1", "producer-tx-2"],
    }


def test_groups_that_differ_by_a_number_are_several_unless_they_have_a_topic_in_common() -> None:
    one, two = (use("sarama", groups=f"etl{n}", reads=f"t{n}", host=f"10.0.0.{n}") for n in (1, 2))
    assert sorted(names(one, two)) == ["etl1", "etl2"]
    two.reads.add("t1")
    assert list(names(one, two)) == ["etl"]


def test_instances_of_streams_are_one_application_by_their_group() -> None:
    ids = [f"pulse-{node}-StreamThread-1" for node in ("east", "west")]
    uses = [use(f"{each}-consumer", JAVA, groups="pulse", reads="in") for each in ids]
    uses += [use(f"{each}-producer", JAVA, writes="out") for each in ids]
    assert list(names(*uses)) == ["pulse"]


def test_a_connect_worker_keeps_what_it_knows_in_topics_of_its_own() -> None:
    stores = [use(f"etl-{each}", JAVA, reads=each, writes=each) for each in ("configs", "offsets")]
    assert names(*stores) == {"etl": ["etl-configs", "etl-offsets"]}
    assert len(names(stores[0], use("etl-offsets", JAVA, writes="lag"))) == 2


def test_a_default_producer_belongs_to_the_only_default_consumer_of_its_host_and_library() -> None:
    reader, writer = use("consumer-etl-1", JAVA, groups="etl", reads="a"), use("producer-1", JAVA)
    writer.writes.add("b")
    assert names(reader, writer) == {"etl": ["consumer-etl-1", "producer-1"]}
    writer.writes.add("a")
    assert len(names(reader, writer)) == 2


def test_two_applications_of_one_name_have_their_users_in_it() -> None:
    found = names(use("orders", JAVA, writes="o"), use("rdkafka", RD, groups="orders", reads="o"))
    assert len(found) == 2
    assert "orders" in found


@pytest.mark.parametrize("client_id", ["", None, "1", UUID])
def test_a_client_without_a_name(client_id: str | None) -> None:
    (name,) = names(use(client_id, JAVA, writes="o"))
    assert name
