"""Secrets become asterisks; everything else stays, and the body that came in is not touched."""

from __future__ import annotations

import pytest

from dissectors import registry
from dissectors.internal import decode, without_secrets
from dissectors.layout import ArrayWire, StructWire, Wire
from dissectors.masking import has_secrets, is_sensitive, masked, secrets_of
from dissectors.schema import Array, Field, Message


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
