"""Secrets become asterisks; everything else stays, and the body that came in is not touched."""

import json
from typing import Any

import pytest

from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.tree import REST
from kafkascope.dissectors.embedded.internal import decode, without_secrets
from kafkascope.dissectors.embedded.masked_tree import masked_tree
from kafkascope.dissectors.embedded.masking import has_secrets, is_sensitive, masked, secrets_of
from kafkascope.dissectors.layout import ArrayWire, Layout, StructWire, Wire
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.reference.config_secrets import CONFIG_NAMES
from kafkascope.dissectors.zookeeper.nodes import holds_credentials
from tests.kit.wire import full_body

SCRAM = {"name": "alice", "mechanism": 1, "iterations": 4096}


@pytest.mark.parametrize(
    ("name", "version", "body", "shown"),
    [
        ("SaslAuthenticateRequest", 2, {"auth_bytes": b"\0a\0secret"}, {"auth_bytes": b"*" * 9}),
        (
            "AlterUserScramCredentialsRequest",
            0,
            {"upsertions": [SCRAM | {"salt": b"salt", "salted_password": b"pepper"}]},
            {"upsertions": [SCRAM | {"salt": b"****", "salted_password": b"******"}]},
        ),
        ("SaslAuthenticateResponse", 0, {"error_message": None, "auth_bytes": b""}, {}),
    ],
)
def test_secrets_are_masked_at_their_length(name: str, version: int, body: Any, shown: Any) -> None:
    whole = full_body(name, version, body)
    before = repr(whole)
    assert masked(registry.layout_of(name, version), whole) == whole | shown
    assert repr(whole) == before


def test_a_body_without_secrets_is_the_very_same_one() -> None:
    layout = registry.layout_of("HeartbeatRequest", 0)
    body = registry.example("HeartbeatRequest", 0)
    assert masked(layout, body) is body
    assert not has_secrets(layout)


def described_body(*sensitive: bool, results: int = 1) -> Any:
    """A DescribeConfigs response of configs that the broker calls sensitive or not."""
    config = {"name": "plugin.thing", "value": "open", "synonyms": [{"name": "x", "value": "open"}]}
    configs = [config | {"is_sensitive": each} for each in sensitive]
    body = {"results": [{"resource_name": "orders", "configs": configs}] * results}
    return full_body("DescribeConfigsResponse", 4, body)


def test_values_that_the_broker_calls_sensitive_are_masked_whatever_their_name() -> None:
    layout, body = registry.layout_of("DescribeConfigsResponse", 4), described_body(True, False)
    found = masked(layout, body)["results"][0]["configs"]
    assert [each["value"] for each in found] == ["****", "open"]
    assert [each["synonyms"][0]["value"] for each in found] == ["****", "open"]
    assert list(secrets_of(layout, body)) == [b"open", b"open"]


def described() -> bytes:
    body = described_body(True, results=50)
    return registry.encode_body("DescribeConfigsResponse", 4, body)


def test_nodes_of_a_tree_hold_no_secret_and_say_which_bytes_do() -> None:
    layout, data = registry.layout_of("DescribeConfigsResponse", 4), described()
    root = masked_tree(layout, data)
    assert "'open'" not in repr(root)
    shown = bytearray(data)
    for leaf in root.leaves():
        if leaf.secret:
            shown[leaf.start : leaf.end] = b"*" * (leaf.end - leaf.start)
    assert bytes(shown) == data.replace(b"open", b"****")


def test_elements_without_nodes_of_their_own_count_as_secret() -> None:
    layout, data = registry.layout_of("DescribeConfigsResponse", 4), described()
    root = masked_tree(layout, data, limits=LIMITS._replace(nodes=300))
    hidden = [leaf for leaf in root.leaves() if leaf.secret]
    assert hidden[-1].name == REST
    assert data.rindex(b"open") < hidden[-1].end


@pytest.mark.parametrize("name", ["SaslAuthenticateRequest", "UserScramCredentialRecord"])
def test_no_secret_survives_in_any_version(name: str) -> None:
    message = registry.message(name)
    for version in range(message.versions.low, message.versions.high + 1):
        layout = registry.layout_of(name, version)
        body = filled(layout.body)
        assert b"classified" not in repr(masked(layout, body)).encode()


def filled(wire: Wire) -> object:
    """A body in which every secret is the word `classified`."""
    if isinstance(wire, ArrayWire):
        return [filled(wire.element)]
    if isinstance(wire, StructWire):
        slots = (*wire.slots, *wire.tags)
        return {s.name: b"classified" if s.field.secret else filled(s.wire) for s in slots}
    return registry.implied_default(wire)


def scram(salt: bytes) -> bytes:
    """A record of the metadata log, behind frame version, type and version of the message."""
    body = {"name": "alice", "mechanism": 1, "salt": salt, "stored_key": b"stored"}
    body |= {"server_key": b"served", "iterations": 4096}
    return b"\1\x0b\0" + registry.encode_body("UserScramCredentialRecord", 0, body)


def test_secrets_of_a_record_are_masked_at_their_places() -> None:
    # The salt is a byte that other fields have, too.
    value = scram(b"a")
    found = decode("__cluster_metadata", None, value)
    hidden = without_secrets(found, value)
    assert hidden == value.replace(b"\2a", b"\2*").replace(b"stored", b"*" * 6).replace(
        b"served", b"*" * 6
    )


def test_secrets_of_a_record_with_odd_varints_are_masked_wherever_they_are() -> None:
    # The length of the name as a varint of two bytes.
    value = scram(b"pepper").replace(b"\6alice", b"\x86\0alice")
    found = decode("__cluster_metadata", None, value)
    hidden = without_secrets(found, value)
    assert len(hidden) == len(value)
    assert b"alice" in hidden
    assert not any(secret in hidden for secret in (b"pepper", b"stored", b"served"))


def test_other_configs_stay() -> None:
    names = ["retention.ms", "password.encoder.iterations", "sasl.oauthbearer.sub.claim.name"]
    assert not any(is_sensitive(name) for name in names)
    layout = registry.layout_of("ConfigRecord", 0)
    body = {"resource_type": 2, "resource_name": "t", "name": "retention.ms", "value": "1"}
    assert masked(layout, body) == body
    assert list(secrets_of(layout, body)) == []


SECRET_WORDS = """
    ssl.keystore.password listener.name.internal.ssl.key.password
    listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config ssl.keystore.key
    ssl.keystore.certificate.chain ssl.truststore.certificates delegation.token.secret.key
    password.encoder.secret sasl.oauthbearer.client.credentials.client.secret
    rsm.config.storage.aws.secret.access.key db.passwd x.pwd my.apikey dbPassword DB_PWD
    AWS_SECRET_ACCESS_KEY my.api-key api.key.value db.password.value basic.auth.user.info
    listener.name.x.plain.sasl.jaas.config producer.override.sasl.jaas.config azure.account.key
    db.pass x.pw github.pat SSL.KEYSTORE.PASSWORD apikey token pwd encryption.key db.passphrase1
    user.password.1 my.passkey gateway.jwt otp.seed
"""
SECRET_NAMES = [
    *SECRET_WORDS.split(),
    *(
        " ssl.keystore.password ",
        "ssl.key.password\t",
        "\xa0my.secret\u200b",
        "my password",
        "ｐａｓｓｗｏｒｄ",
    ),
]
HARMLESS_NAMES = """
    ssl.keystore.location key.serializer key.converter ssl.keystore.type retention.ms
    connection.url delegation.token.max.lifetime.ms delegation.token.expiry.check.interval.ms
    secret.provider.class sasl.oauthbearer.token.endpoint.url
    listener.name.x.ssl.keystore.location password.encoder.key.length
    password.encoder.iterations bypass.mode compass.x monkey cleanup.policy
    authorizer.class.name
"""
SECRET_VALUES = [
    "jdbc:mysql://user:pw@host/db",
    "https://h/db?password=x",
    "https://h/?a=b&token=abc",
    "jdbc:sqlserver://h;user=a;pwd=b",
    'org.x.PlainLoginModule required username="x" password="y";',
    '{"password": "x"}',
    "https://ghp_token@github.com/x",
    "redis://:pw@h",
    "Endpoint=sb://x/;SharedAccessKeyName=r;SharedAccessKey=abc",
    "-----BEGIN RSA PRIVATE KEY-----",
    "Bearer abcdefghijk",
    "jdbc:oracle:thin:scott/tiger@//h:1521/orcl",
    "jdbc:oracle:oci8:scott/ti ger@orcl",
    "mongodb://user:my password@h/db",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "x" * 100_000,
]
HARMLESS_VALUES = [
    "PLAINTEXT://h:9092,SSL://h:9093",
    "RULE:[1:$1@$0](.*@MYDOMAIN.COM)s/@.*//",
    "https://h:8080/oauth/token",
    "PLAINTEXT:PLAINTEXT,SSL:SSL",
    "compact,delete",
    "jdbc:oracle:thin:@//h:1521/orcl",
    "http://registry:8081/,http://other:8081/",
    "eyJ.a",
]


def altering(name: str, value: str) -> tuple[Layout, Any]:
    """A request that alters a config."""
    configs = [{"name": name, "config_operation": 0, "value": value}]
    body = {"resources": [{"resource_type": 4, "resource_name": "1", "configs": configs}]}
    name = "IncrementalAlterConfigsRequest"
    return registry.layout_of(name, 1), full_body(name, 1, body)


def altered(name: str, value: str) -> str:
    """The value of a config in a request, as it is shown and kept."""
    body = masked(*altering(name, value))
    return str(body["resources"][0]["configs"][0]["value"])


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_what_people_call_their_secrets_is_masked(name: str) -> None:
    layout, body = altering(name, "hüsh")
    hidden = masked(layout, body)
    assert hidden["resources"][0]["configs"][0] == body["resources"][0]["configs"][0] | {
        "value": "*****"
    }
    assert list(secrets_of(layout, body)) == ["hüsh".encode()]
    sizes = {len(registry.write_layout(layout, each)) for each in (body, hidden)}
    assert len(sizes) == 1
    # Nodes of ZooKeeper. Looked at only where the node had one of six words: `x.pwd` passed.
    configs = {"retention.ms": "1", name: "hunter2"}
    assert holds_credentials(json.dumps({"version": 1, "config": configs}).encode())


@pytest.mark.parametrize("name", HARMLESS_NAMES.split())
def test_what_only_sounds_like_a_secret_stays(name: str) -> None:
    assert altered(name, "value") == "value"
    for value in HARMLESS_VALUES:
        assert altered("listeners", value) == value
        assert not holds_credentials(json.dumps({"version": 1, "config": {name: value}}).encode())
        assert not holds_credentials(value.encode())


@pytest.mark.parametrize("value", SECRET_VALUES)
def test_a_secret_inside_a_value_is_masked_whatever_the_name(value: str) -> None:
    assert set(altered("connection.url", value)) == {"*"}
    assert len(altered("x", value)) == len(value)
    assert holds_credentials(json.dumps({"version": 1, "config": {"x": value}}).encode())
    assert holds_credentials(value.encode())


PASSWORD_CONFIGS = """
    delegation.token.master.key delegation.token.secret.key password.encoder.old.secret
    password.encoder.secret sasl.jaas.config sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.client.credentials.client.secret ssl.key.password
    ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.password
    ssl.truststore.certificates ssl.truststore.password zookeeper.ssl.keystore.password
    zookeeper.ssl.truststore.password
"""


def test_kafkas_own_configs_are_masked_where_they_are_of_type_password() -> None:
    assert sorted(filter(is_sensitive, CONFIG_NAMES)) == PASSWORD_CONFIGS.split()


def test_secrets_in_configs_of_streams_topics_are_masked() -> None:
    layout = registry.layout_of("StreamsGroupHeartbeatRequest", 1)
    slots = {"key": "my.apikey", "value": "hunter2"}
    topic = {"name": "t", "partitions": 1, "replication_factor": 1, "topic_configs": [slots]}
    part = {"subtopology_id": "0", "state_changelog_topics": [topic]}
    topology = {"epoch": 0, "subtopologies": [part]}
    body = full_body("StreamsGroupHeartbeatRequest", 1, {"topology": topology})
    assert b"hunter2" not in registry.write_layout(layout, masked(layout, body))


def test_a_hostile_name_or_value_takes_no_time() -> None:
    assert is_sensitive("." * 32_000)
    assert not is_sensitive("." * 500)
    assert altered("x", "://" * 20_000) == "://" * 20_000
