"""Secrets become asterisks; everything else stays, and the body that came in is not touched."""

from __future__ import annotations

import json

import pytest

from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.tree import REST
from kafkascope.dissectors.embedded.internal import decode, without_secrets
from kafkascope.dissectors.embedded.masked_tree import masked_tree
from kafkascope.dissectors.embedded.masking import has_secrets, is_sensitive, masked, secrets_of
from kafkascope.dissectors.layout import ArrayWire, StructWire, Wire
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.reference.config_secrets import CONFIG_NAMES
from kafkascope.dissectors.schema import Array, Field, Message
from kafkascope.dissectors.zookeeper.nodes import holds_credentials


def test_a_sasl_token_is_masked_at_its_length() -> None:
    layout = registry.layout_of("SaslAuthenticateRequest", 2)
    body = {"auth_bytes": b"\0alice\0secret"}
    assert masked(layout, body) == {"auth_bytes": b"*" * 13}
    assert body["auth_bytes"].endswith(b"secret")


def test_null_stays_null() -> None:
    layout = registry.layout_of("SaslAuthenticateResponse", 0)
    body = {"error_code": 58, "error_message": None, "auth_bytes": b""}
    assert masked(layout, body) == body


def test_secrets_inside_arrays_are_found() -> None:
    layout = registry.layout_of("AlterUserScramCredentialsRequest", 0)
    entry = {
        "name": "alice",
        "mechanism": 1,
        "iterations": 4096,
        "salt": b"salt",
        "salted_password": b"pepper",
    }
    body = {"deletions": [], "upsertions": [entry]}
    assert masked(layout, body)["upsertions"] == [
        entry | {"salt": b"****", "salted_password": b"******"}
    ]


def test_a_body_without_secrets_is_the_very_same_one() -> None:
    layout = registry.layout_of("HeartbeatRequest", 0)
    body = registry.example("HeartbeatRequest", 0)
    assert masked(layout, body) is body
    assert not has_secrets(layout)


def test_values_that_the_broker_calls_sensitive_are_masked_whatever_their_name() -> None:
    layout = registry.layout_of("DescribeConfigsResponse", 4)
    body = registry.example("DescribeConfigsResponse", 4)
    synonym = {"name": "plugin.thing", "value": "open", "source": 5}
    config = {
        "name": "plugin.thing",
        "value": "open",
        "read_only": False,
        "config_source": 5,
        "is_sensitive": True,
        "synonyms": [synonym],
        "config_type": 2,
        "documentation": None,
    }
    plain = {**config, "is_sensitive": False}
    result = {
        "error_code": 0,
        "error_message": None,
        "resource_type": 2,
        "resource_name": "orders",
        "configs": [config, plain],
    }
    found = masked(layout, {**body, "results": [result]})["results"][0]["configs"]
    assert [each["value"] for each in found] == ["****", "open"]
    assert [each["synonyms"][0]["value"] for each in found] == ["****", "open"]
    assert list(secrets_of(layout, {**body, "results": [result]})) == [b"open", b"open"]


def described() -> bytes:
    body = registry.example("DescribeConfigsResponse", 4)
    synonym = {"name": "plugin.thing", "value": "open", "source": 5}
    config = synonym | {"read_only": False, "config_source": 5, "is_sensitive": True}
    config = {name: config[name] for name in config if name != "source"}
    config |= {"synonyms": [synonym], "config_type": 2, "documentation": None}
    result = {"error_code": 0, "error_message": None, "resource_type": 2, "resource_name": "t"}
    body["results"] = [result | {"configs": [config]}] * 50
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


SUSPECT = ("password", "secret", "token", "hmac", "salt", "credential", "stored_key", "server_key")
# Names that sound like a secret and are none.
HARMLESS = {
    "token_id",
    "tokens",
    "token_requester_principal_type",
    "token_requester_principal_name",
    "user_scram_credentials",
    "credential_infos",
    "token_auth",
    "token_authenticated",
}


def fields(message: Message) -> list[Field]:
    found = list(message.fields)
    for field in found:  # grows while it is walked
        found += field.children
    return found


def test_every_field_whose_name_sounds_like_a_secret_is_marked() -> None:
    unmarked = set()
    for name in registry.message_names():
        message = registry.message(name)
        for each in (message, *message.variants):
            unmarked |= {
                (name, field.name)
                for field in fields(each)
                if any(word in field.name for word in SUSPECT)
                and not field.secret
                and not (isinstance(field, Array) and field.children)
                and field.name not in HARMLESS
            }
    assert unmarked == set()


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


PASSWORDS = [
    "ssl.keystore.password",
    "listener.name.internal.ssl.key.password",
    "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
    "delegation.token.secret.key",
    "password.encoder.secret",
    "sasl.oauthbearer.client.credentials.client.secret",
    "rsm.config.storage.aws.secret.access.key",
]


@pytest.mark.parametrize("name", PASSWORDS)
def test_the_value_of_a_config_of_such_a_name_is_masked(name: str) -> None:
    layout = registry.layout_of("IncrementalAlterConfigsRequest", 1)
    config = {"name": name, "config_operation": 0, "value": "hüsh"}
    resource = {"resource_type": 4, "resource_name": "1", "configs": [config]}
    body = {"resources": [resource], "validate_only": False}
    hidden = masked(layout, body)
    assert hidden["resources"][0]["configs"] == [config | {"value": "*****"}]
    assert list(secrets_of(layout, body)) == ["hüsh".encode()]
    sizes = {len(registry.write_layout(layout, each)) for each in (body, hidden)}
    assert len(sizes) == 1


def scram(salt: bytes) -> bytes:
    """A record of the metadata log, behind frame version, type and version of the message."""
    body = {"name": "alice", "mechanism": 1, "salt": salt, "stored_key": b"stored"}
    body |= {"server_key": b"served", "iterations": 4096}
    return b"\1\x0b\0" + registry.encode_body("UserScramCredentialRecord", 0, body)


def test_secrets_of_a_record_are_masked_at_their_places() -> None:
    # The salt is a byte that other fields have, too.
    value = scram(b"a")
    found = decode("__cluster_metadata", None, value)
    assert found is not None
    hidden = without_secrets(found, value)
    assert hidden == value.replace(b"\2a", b"\2*").replace(b"stored", b"*" * 6).replace(
        b"served", b"*" * 6
    )


def test_secrets_of_a_record_with_odd_varints_are_masked_wherever_they_are() -> None:
    # The length of the name as a varint of two bytes.
    value = scram(b"pepper").replace(b"\6alice", b"\x86\0alice")
    found = decode("__cluster_metadata", None, value)
    assert found is not None
    assert found.value is not None
    hidden = without_secrets(found, value)
    assert hidden is not None
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


SECRET_NAMES = [
    "db.passwd",
    "x.pwd",
    "my.apikey",
    " ssl.keystore.password ",
    "ssl.key.password\t",
    "\xa0my.secret\u200b",
    "dbPassword",
    "DB_PWD",
    "AWS_SECRET_ACCESS_KEY",
    "my.api-key",
    "api.key.value",
    "db.password.value",
    "basic.auth.user.info",
    "my password",
    "listener.name.x.plain.sasl.jaas.config",
    "producer.override.sasl.jaas.config",
    "azure.account.key",
    "db.pass",
    "x.pw",
    "github.pat",
    "SSL.KEYSTORE.PASSWORD",
    "apikey",
    "token",
    "pwd",
    "encryption.key",
    "db.passphrase1",
    "user.password.1",
    "ｐａｓｓｗｏｒｄ",
    "my.passkey",
    "gateway.jwt",
    "otp.seed",
]
HARMLESS_NAMES = [
    "ssl.keystore.location",
    "key.serializer",
    "key.converter",
    "ssl.keystore.type",
    "retention.ms",
    "connection.url",
    "delegation.token.max.lifetime.ms",
    "delegation.token.expiry.check.interval.ms",
    "secret.provider.class",
    "sasl.oauthbearer.token.endpoint.url",
    "listener.name.x.ssl.keystore.location",
    "password.encoder.key.length",
    "password.encoder.iterations",
    "bypass.mode",
    "compass.x",
    "monkey",
    "cleanup.policy",
    "authorizer.class.name",
]
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


def altered(name: str, value: str) -> str:
    """The value of a config in a request, as it is shown and kept."""
    layout = registry.layout_of("IncrementalAlterConfigsRequest", 1)
    config = {"name": name, "config_operation": 0, "value": value}
    resource = {"resource_type": 4, "resource_name": "", "configs": [config]}
    body = masked(layout, {"resources": [resource], "validate_only": False})
    return str(body["resources"][0]["configs"][0]["value"])


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_what_people_call_their_secrets_is_masked(name: str) -> None:
    assert altered(name, "hunter2") == "*" * 7


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_what_only_sounds_like_a_secret_stays(name: str) -> None:
    assert altered(name, "value") == "value"


@pytest.mark.parametrize("value", SECRET_VALUES)
def test_a_secret_inside_a_value_is_masked_whatever_the_name(value: str) -> None:
    assert set(altered("connection.url", value)) == {"*"}
    assert len(altered("x", value)) == len(value)


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_configs_in_nodes_of_zookeeper_are_told_by_the_same_names(name: str) -> None:
    # Looked at only where the node had one of six words: `x.pwd` passed.
    configs = {"retention.ms": "1", name: "hunter2"}
    assert holds_credentials(json.dumps({"version": 1, "config": configs}).encode())


@pytest.mark.parametrize("value", SECRET_VALUES)
def test_nodes_of_zookeeper_are_told_by_the_same_values(value: str) -> None:
    assert holds_credentials(json.dumps({"version": 1, "config": {"x": value}}).encode())
    assert holds_credentials(value.encode())


@pytest.mark.parametrize("name", HARMLESS_NAMES)
@pytest.mark.parametrize("value", HARMLESS_VALUES)
def test_other_nodes_of_zookeeper_stay(name: str, value: str) -> None:
    assert not holds_credentials(json.dumps({"version": 1, "config": {name: value}}).encode())
    assert not holds_credentials(value.encode())


@pytest.mark.parametrize("value", HARMLESS_VALUES)
def test_addresses_and_rules_stay(value: str) -> None:
    assert altered("listeners", value) == value


def test_kafkas_own_configs_are_masked_where_they_are_of_type_password() -> None:
    assert sorted(name for name in CONFIG_NAMES if is_sensitive(name)) == [
        "delegation.token.master.key",
        "delegation.token.secret.key",
        "password.encoder.old.secret",
        "password.encoder.secret",
        "sasl.jaas.config",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.client.credentials.client.secret",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.certificates",
        "ssl.truststore.password",
        "zookeeper.ssl.keystore.password",
        "zookeeper.ssl.truststore.password",
    ]


def test_secrets_in_configs_of_streams_topics_are_masked() -> None:
    layout = registry.layout_of("StreamsGroupHeartbeatRequest", 1)
    slots = {"key": "my.apikey", "value": "hunter2"}
    topic = {"name": "t", "partitions": 1, "replication_factor": 1, "topic_configs": [slots]}
    body = registry.example("StreamsGroupHeartbeatRequest", 1)
    part = {
        "subtopology_id": "0",
        "source_topics": [],
        "source_topic_regex": [],
        "state_changelog_topics": [topic],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "copartition_groups": [],
    }
    body["topology"] = {"epoch": 0, "subtopologies": [part]}
    assert b"hunter2" not in registry.write_layout(layout, masked(layout, body))


def test_a_hostile_name_or_value_takes_no_time() -> None:
    assert is_sensitive("." * 32_000)
    assert not is_sensitive("." * 500)
    assert altered("x", "://" * 20_000) == "://" * 20_000
