"""Limits of the state of detectors, and of the names in findings.

These bound memory, time and sentences. Whether something is a finding is decided by thresholds:
`analyzer.findings.rules`.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class FindingLimits(NamedTuple):
    """Names that end in no unit are counts."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # --- what detectors keep

    # Keys of a detector's table, such as clients by API and broker; of one whose keys have topics
    # or errors in them; of one about connections, groups or schemas; of one that keeps events of
    # each key.
    keys: int = 2_000
    many_keys: int = 5_000
    few_keys: int = 1_000
    event_keys: int = 300
    # Batches that a producer sent, a sample by key: copies of a batch are in it together, or none
    # is.
    retried_batches: int = 5_000
    # Minutes of brokers whose responses are noted, more than a day of ten of them; slots of a
    # minute in which the end of a pause is searched for, two minutes in each direction.
    broker_minutes: int = 20_000
    pause_slots: int = 2_400
    # Topics whose names are compared with each other.
    compared_topics: int = 1_000
    # Subscriptions of a group that are compared: two applications show among a few of them.
    compared_subscriptions: int = 20

    # --- keys and values, by their schemas

    # Records of a topic without any schema, and with schemas, before only some of its batches are
    # inspected; records of all topics.
    plain_records: int = 2_000
    framed_records: int = 20_000
    inspected_records: int = 200_000
    # Topics of which it is counted how many records were inspected.
    inspected_topics: int = 10_000
    # Verdicts, schemas in use, and schemas that are compared with their next version.
    verdicts: int = 5_000
    # What a batch is expanded to; a key or value that is inspected.
    expanded_bytes: int = 4 << 20
    payload_bytes: int = 1 << 20
    # A schema in which names are searched for; of larger ones all are hidden.
    schema_chars: int = 32 << 10

    # --- causes and evidence

    # Findings that explain another one by the same line: more are no help, and thousands of one
    # client would explain thousands of others. Causes of one entity that are looked at for each
    # effect, the worst and earliest.
    reasons: int = 20
    causes: int = 200
    # Findings of one rule and severity that an exchange has; values of ranges that become a key
    # each in the index of evidence.
    findings_of_rule: int = 20
    indexed_values: int = 1_000

    # --- texts and filters

    # A finding's text, and its filter. Names can have 32 KB: where a filter is longer, the first
    # exchange has to do. A filter that is to be copied.
    text_chars: int = 1_000
    filter_chars: int = 8_000
    copied_chars: int = 1_000
    # Entities of a kind that a finding names, for those that it explains; exchanges and connections
    # that a filter names. Findings about connections, and those about groups and topics, name
    # fewer.
    entities: int = 100
    connections: int = 50
    topics: int = 20
    # Connections of a client, requests of a pause, clients of a leader that moved, and exchanges of
    # a schema, in a filter. Of more clients the errors alone select what happened.
    client_connections: int = 200
    paused_requests: int = 200
    leader_clients: int = 20
    schema_exchanges: int = 20
    # Items of a list in a sentence: of a common one, of consequences, changes of a schema, resets,
    # protocols, rules of a proxy, refused APIs.
    listed: int = 4
    consequences: int = 6
    changes: int = 8
    resets: int = 3
    protocols: int = 8
    faults: int = 3
    refusals: int = 6


LIMITS: Final = FindingLimits()
