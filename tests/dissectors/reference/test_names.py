"""Names of values, and marks that no field lacks."""

import re
from collections.abc import Callable, Iterator

import pytest

from kafkascope.analyzer.transform.names.pseudonyms import NOUNS
from kafkascope.analyzer.transform.redaction import WRITERS, writer_of
from kafkascope.dissectors import registry, schema
from kafkascope.dissectors.embedded import groups
from kafkascope.dissectors.embedded.table import FORMATS
from kafkascope.dissectors.reference.codes import ENUMS, ERRORS
from kafkascope.dissectors.reference.help import HELP, help_of
from kafkascope.dissectors.reference.names import feature_level, name_of, operations, time_text
from kafkascope.dissectors.reference.words import WORDS, words_of
from kafkascope.dissectors.values import Uuid


def every_field() -> Iterator[tuple[str, schema.Field]]:
    def walk(name: str, fields: tuple[schema.Field, ...]) -> Iterator[tuple[str, schema.Field]]:
        for field in fields:
            yield name, field
            yield from walk(name, field.children)

    for name in registry.message_names():
        message = registry.message(name)
        yield from walk(name, message.fields)
        for variant in message.variants:
            yield from walk(name, variant.fields)


def test_every_enum_that_a_field_names_exists_and_every_set_is_used_or_known() -> None:
    used = {field.enum for _, field in every_field()} - {"", "ErrorCode", "ApiKey", "FeatureLevel"}
    assert used <= ENUMS.keys()
    elsewhere = {
        "BatchAttributesBits": "records",
        "MessageAttributesBits": "records",
        "TimestampType": "records",
        "ListenerType": "the protocol tables",
        "PartitionLeaderEpoch": "brokers' memory only",
    }
    unused = {name for name in ENUMS if not name.startswith("FeatureLevel")} - used
    assert unused == set(elsewhere)


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        (schema.Int16("error_code", "0+"), 6, "NOT_LEADER_OR_FOLLOWER"),
        (schema.Int16("error_code", "0+"), 9999, ""),
        (schema.Int16("acks", "0+", enum="RequiredAcks"), -1, "ALL"),
        (schema.Int8("isolation_level", "0+", enum="IsolationLevel"), 1, "READ_COMMITTED"),
        (schema.String("group_state", "0+", enum="GroupState"), "Stable", ""),
        (schema.String("m", "0+", enum="SaslMechanism"), "SCRAM-SHA-256", ""),
        (schema.Bool("committed", "0+", enum="TransactionResult"), True, "COMMIT"),
        (schema.Int64("timestamp", "0+", enum="ListOffsetsTimestamp"), -2, "EARLIEST"),
        (schema.Int64("t", "0+", unit="time_ms"), 1_700_000_000_001, "2023-11-14T22:13:20.001Z"),
        (schema.Int64("t", "0+", unit="time_ms"), -1, ""),
        (schema.Int32("plain", "0+"), 5, ""),
        (schema.Int32("operations", "0+", enum="AuthorizedOperations"), 1 << 3, "READ"),
        (schema.Int16("request_api_key", "0+", enum="ApiKey"), 1, "Fetch"),
        (schema.Int16("request_api_key", "0+", enum="ApiKey"), 999, ""),
        (schema.Bool("plain", "0+"), True, ""),
    ],
)
def test_names(field: schema.Field, value: object, name: str) -> None:
    assert name_of(field, value) == name


def test_operations_are_bits() -> None:
    assert operations(1 << 3 | 1 << 8) == "READ|DESCRIBE"
    assert operations(-(1 << 31)) == "NOT_REQUESTED"
    assert operations(0) == "none"


def test_times_that_are_none() -> None:
    assert time_text(-1) == time_text(1 << 62) == ""
    assert time_text(0) == "1970-01-01T00:00:00.000Z"


def test_feature_levels() -> None:
    assert feature_level("group.version", 1) == "GV_1"
    assert feature_level("nothing", 1) == ""
    level = schema.Int16("max_version_level", "0+", enum="FeatureLevel")
    assert name_of(level, 1, {"feature": "group.version"}) == "GV_1"
    assert name_of(level, 21, {"name": "metadata.version"}) == "3.9-IV0"
    assert name_of(level, 1) == ""


def test_directories_that_are_none() -> None:
    directory = schema.Uuid("directory", "0+", enum="DirectoryId")
    assert name_of(directory, Uuid(bytes(15) + b"\2")) == "LOST"
    assert name_of(directory, Uuid(bytes(15) + b"\7")) == ""


SECRET = re.compile(r"password|hmac|salt|stored_key|server_key|auth_bytes|secret|credential|token")
NO_SECRET = {
    *("token_id", "token_requester_principal_type", "token_requester_principal_name"),
    *("token_auth", "token_authenticated"),
}
"""Names that sound like a secret and are none."""
TIME = re.compile(r"timestamp|time_ms$")
NO_TIME = {"throttle_time_ms", "retention_time_ms", "session_lifetime_ms", "max_lifetime_ms"}
"""Durations."""
NODE = re.compile(r"^(broker|node|leader|controller|voter|voted|replica|candidate)_id$|^isr$")
MARKS: dict[str, Callable[[schema.Field], bool]] = {
    "secret": lambda field: (
        bool(SECRET.search(field.name))
        and not isinstance(field, schema.Array | schema.Struct)
        and field.name not in NO_SECRET
        and not field.secret
    ),
    "time": lambda field: (
        bool(TIME.search(field.name))
        and isinstance(field, schema.Int64)
        and field.name not in NO_TIME
        and field.unit != "time_ms"
    ),
    "node": lambda field: (
        bool(NODE.search(field.name)) and (field.entity or field.subject) != "brokerId"
    ),
}
"""Whether a field that sounds like one is not marked."""


@pytest.mark.parametrize("mark", MARKS)
def test_every_field_that_sounds_like_one_is_marked(mark: str) -> None:
    assert {(name, field.name) for name, field in every_field() if MARKS[mark](field)} == set()


EPOCH = re.compile(r"epochs?$|^generation|^throttle_time_ms$|^session_id$|^incarnation_id$")
STEADY = {
    "topology_epoch": "given by the application",
    "endpoint_information_epoch": "counts changes of endpoints, not of the run",
    "validated_topology_epoch": "given by the application",
    "stored_description_topology_epoch": "given by the application",
    "failed_description_topology_epoch": "given by the application",
    "generation": "declared outside of the messages",
}


def test_every_epoch_is_volatile_or_steady_for_a_reason() -> None:
    unmarked = {
        (name, field.name)
        for name, field in every_field()
        if EPOCH.search(field.name)
        and not isinstance(field, schema.Struct)
        and not field.children
        and not field.volatile
        and field.name not in STEADY
    }
    # The epoch of a topology is the application's own number.
    assert {name for name, _ in unmarked} <= {
        "StreamsGroupHeartbeatRequest",
        "StreamsGroupDescribeResponse",
        "StreamsGroupTopologyValue",
    }


UUIDS_THAT_STAY = {"directories", "offline_log_dirs", "log_dirs", "cordoned_log_dirs", "directory"}


def test_every_generated_id_is_volatile() -> None:
    unmarked = {
        field.name
        for _, field in every_field()
        if (isinstance(field, schema.Uuid) or field.element is schema.Uuid) and not field.volatile
    }
    assert unmarked <= UUIDS_THAT_STAY


# Of brokers among themselves, of the metadata log, of controllers, and the user's own endpoint.
ENDPOINTS_LEFT_ALONE = """
    BrokerRegistrationRequest ControllerRegistrationRequest UpdateMetadataRequest
    LeaderAndIsrRequest RegisterBrokerRecord RegisterControllerRecord VotersRecord
    AddRaftVoterRequest UpdateRaftVoterRequest UpdateRaftVoterResponse BeginQuorumEpochRequest
    BeginQuorumEpochResponse EndQuorumEpochRequest EndQuorumEpochResponse VoteResponse
    FetchSnapshotResponse DescribeQuorumResponse StreamsGroupHeartbeatRequest
    StreamsGroupHeartbeatResponse StreamsGroupDescribeResponse StreamsGroupMemberMetadataValue
"""


def test_every_host_and_port_is_an_endpoint_or_left_alone_with_a_reason() -> None:
    found = {
        name
        for name, field in every_field()
        if field.name in ("host", "port", "v0_host", "v0_port") and not field.endpoint
    }
    acl_hosts = {name for name in found if "Acl" in name or "AccessControl" in name}
    assert found - acl_hosts <= set(ENDPOINTS_LEFT_ALONE.split())


def test_every_closed_list_that_a_field_names_exists_and_is_used() -> None:
    used = {field.word for _, field in every_field()} - {""}
    assert used == WORDS.keys() - {"ConfigValue"}  # that one is asked by the values of configs


KINDS = NOUNS.keys() | {"address", "coordinatorKey", "configValue", "freeText"}
"""What texts are declared to be, and redaction knows a pseudonym or asterisks for."""


def embedded_fields() -> Iterator[tuple[str, schema.Field]]:
    """Of messages that are declared where the bytes that hold them are read."""
    declared = (
        groups.CONNECT_ASSIGNMENT,
        groups.CONNECT_SUBSCRIPTION,
        groups.COOPERATIVE_USER_DATA,
        groups.STICKY_USER_DATA,
    )
    for message in declared:
        yield from ((message.name, field) for field in message.fields)
        for each in message.fields:
            yield from ((message.name, field) for field in each.children)


def test_every_text_is_a_name_of_some_kind_or_a_word_of_a_closed_list_or_goes() -> None:
    unmarked = set()
    for name, field in (*every_field(), *embedded_fields()):
        if not (isinstance(field, schema.String) or field.element is schema.String):
            continue
        kind = field.entity or field.subject
        if not (kind in KINDS if kind else field.secret or words_of(field)):
            unmarked.add((name, field.name))
    assert unmarked == set()


def test_all_bytes_are_secret_or_records_or_of_a_known_format_or_go() -> None:
    unmarked = set()
    for name, field in (*every_field(), *embedded_fields()):
        if not isinstance(field, schema.Bytes) or isinstance(field, schema.Records):
            continue
        known = writer_of(name, field.name) or field.secret or field.subject == "freeText"
        if not known:
            unmarked.add((name, field.name))
    assert unmarked == set()
    # A format that is opened for people is written anew for those who redact, or goes.
    assert {form for form in FORMATS.values() if form not in WRITERS} == {
        "token of a client",
        "token of a broker",
        "request",
        "response",
    }


# --- help for every error -------------------------------------------------------------------------


def test_every_code_has_its_meaning_and_all_but_none_a_cause() -> None:
    assert HELP.keys() == ERRORS.keys()
    assert [code for code, text in HELP.items() if not text.causes] == [0]


def test_texts_are_sentences_and_no_code_says_what_another_says() -> None:
    for text in HELP.values():
        assert text.meaning[0].isupper()
        assert text.meaning.endswith(".")
        assert all(isinstance(cause, str) and not cause.endswith(".") for cause in text.causes)
        assert isinstance(text.causes, tuple)
    assert len({text.meaning for text in HELP.values()}) == len(HELP)


def test_a_code_that_nobody_knows_says_so() -> None:
    assert "No Kafka release" in help_of(9999).meaning
