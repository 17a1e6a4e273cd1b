"""Printed grammar and histories, as they are read."""

import difflib

import pytest

from docs.print_grammar import TARGET, document
from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.grammar import call_grammar, grammar
from kafkascope.dissectors.codec.history import changes, differences, history
from kafkascope.dissectors.layout import resolve
from kafkascope.dissectors.schema import Array, Int8, Int32, String, Struct, data

HEARTBEAT = """\
# Heartbeat, api key 12, version 4 of 0-4: Kafka 2.4.0 and later
# on a connection: int32 size of what follows, header, body

Request Header v2 => request_api_key request_api_version correlation_id client_id _tagged_fields
  request_api_key => INT16      # 12
  request_api_version => INT16  # 4
  correlation_id => INT32
  client_id => NULLABLE_STRING

Heartbeat Request (Version: 4) => group_id generation_id member_id group_instance_id _tagged_fields
  group_id => COMPACT_STRING
  generation_id => INT32
  member_id => COMPACT_STRING
  group_instance_id => COMPACT_NULLABLE_STRING

Response Header v1 => correlation_id _tagged_fields
  correlation_id => INT32

Heartbeat Response (Version: 4) => throttle_time_ms error_code _tagged_fields
  throttle_time_ms => INT32
  error_code => INT16
"""

HEARTBEAT_HISTORY = """\
Heartbeat, api key 12: versions 0-4, on listeners of kind broker, zkBroker

0  Kafka 0.9.0
   request   + group_id STRING
   request   + generation_id INT32
   request   + member_id STRING
   response  + error_code INT16
1  Kafka 0.11.0
   response  + throttle_time_ms INT32
2  Kafka 2.0.0
   the bytes are those of 1
3  Kafka 2.3.0
   request   + group_instance_id NULLABLE_STRING
4  Kafka 2.4.0
   request   ~ flexible: strings and arrays are compact, structs end with tagged fields
   response  ~ flexible: strings and arrays are compact, structs end with tagged fields
"""


def test_an_api_is_printed_with_headers_and_both_sides() -> None:
    assert call_grammar(12, 4) == HEARTBEAT


def test_a_history_says_when_and_what() -> None:
    assert history("Heartbeat") == HEARTBEAT_HISTORY


def test_docs_are_those_of_the_declarations() -> None:
    """When this fails: `make docs`, and review the difference."""
    old, new = TARGET.read_text().splitlines(), document().splitlines()
    assert list(difflib.unified_diff(old, new, "docs/grammar.md", "now", lineterm="")) == []


SAMPLE = data("Sample", versions="0-2", flexible="1+").of(
    Array("topics", "0+", nullable="1+").of(
        String("name", "0-1"), Array("partitions", "0+").of(Int32)
    ),
    Int8("isolation", "0+", enum="IsolationLevel", doc="what a reader sees"),
    Struct("state", "1+", nullable="1+", default=None).of(Int32("epoch", "1+")),
    String("note", "2+", tag=0, default="none", secret=True),
    Int32("wide", "0", enum="AclOperation"),
)


SAMPLE_TEXT = """\
Sample (Version: 2) => [topics] isolation state _tagged_fields
  topics => [partitions] _tagged_fields  # may be null
    partitions => INT32
  isolation => INT8                      # what a reader sees; 0 READ_UNCOMMITTED, 1 READ_COMMITTED
  state => epoch _tagged_fields          # may be null; after INT8 -1 (null) or 1
    epoch => INT32
  _tagged_fields => note<tag: 0>
    note<tag: 0> => COMPACT_STRING       # secret; default none
"""


def test_comments_say_what_types_do_not() -> None:
    assert grammar(resolve(SAMPLE, 2)) == SAMPLE_TEXT


def test_a_set_of_many_values_is_named() -> None:
    assert "wide => INT32      # a value of AclOperation\n" in grammar(resolve(SAMPLE, 0))


def test_changes_are_told_field_by_field() -> None:
    assert [str(change) for change in changes(SAMPLE, 1)] == [
        "~ flexible: strings and arrays are compact, structs end with tagged fields",
        "- wide",
        "~ topics may be null",
        "+ state NULLABLE_STRUCT",
        "+ state.epoch INT32",
    ]
    assert [str(change) for change in changes(SAMPLE, 2)] == [
        "- topics[].name",
        "+ note COMPACT_STRING, tag 0",
    ]


def test_a_struct_that_goes_takes_its_fields_along() -> None:
    gone = differences(resolve(SAMPLE, 2), resolve(SAMPLE, 0))
    assert [str(change) for change in gone if change.kind == "removed"] == ["- state", "- note"]
    assert "~ not flexible" in [str(change) for change in gone]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("InitProducerId", "Kafka 4.1.0, never finished"),
        ("JoinGroup", "Kafka 0.9.0, not in 4.0.0 but again in 4.0.1"),
        ("OffsetCommit", "Kafka 3.6.0, finished in 3.7.0"),
        ("ShareFetch", "gone in 4.1.0"),
        ("TransactionLogValue", "+ next_producer_epoch INT16, tag 3 (since Kafka 4.1.0)"),
        ("ConsumerGroupHeartbeat", "request   in Kafka 3.5.0-3.6.2 another layout:"),
        ("ListOffsets", "once called Offsets, ListOffset"),
    ],
)
def test_what_is_special_about_a_version_is_told(name: str, line: str) -> None:
    assert line in history(name)


def test_every_message_has_a_grammar_at_every_version() -> None:
    for name in registry.message_names():
        message = registry.message(name)
        for version in range(message.versions.low, message.versions.high + 1):
            text = grammar(registry.layout_of(name, version))
            assert text.endswith("\n")
            assert f"{version}" in text.splitlines()[0] or name.startswith("zk.")
