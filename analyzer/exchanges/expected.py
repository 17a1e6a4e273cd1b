"""Errors that every healthy cluster has because the protocol works that way: the class `expected`.

The classes are declared here once. An exchange alone decides about most of them. Of those with
`needs_findings`, the exchange shows too little: leaders that moved are ordinary in an election and
trouble everywhere else. `findings.evidence` decides about these, and takes back what a finding is
about.

Not in the list, with reasons:

- UNKNOWN_TOPIC_OR_PARTITION: a topic that is about to be created answers as one with a wrong name.
- TOPIC_ALREADY_EXISTS, ELECTION_NOT_NEEDED: the protocol does not make anybody ask.
- UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, OFFSET_OUT_OF_RANGE: the client lost something.
- DUPLICATE_SEQUENCE_NUMBER: a response was lost, and findings about sequences say which.
- SASL re-authentication (KIP-368): has no error of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH = 1, 2, 3, 8, 9
JOIN_GROUP, HEARTBEAT, SYNC_GROUP, API_VERSIONS, TXN_OFFSET_COMMIT = 11, 12, 14, 18, 28
CONSUMER_GROUP_DESCRIBE, PUSH_TELEMETRY, SHARE_FETCH, SHARE_ACKNOWLEDGE = 69, 72, 78, 79


class ErrorClass(NamedTuple):
    """Errors that are expected under one condition."""

    name: str
    codes: frozenset[int]
    apis: frozenset[int] | None
    """Keys of the APIs whose responses may have them; None for all APIs."""
    condition: str
    """When the protocol has them, as a clause."""
    source: str
    """The KIP, or the part of the protocol, that says so."""
    needs_findings: bool = False
    """Whether the exchange alone does not show that the condition holds."""


CLASSES: Final = (
    ErrorClass(
        "version-fallback",
        frozenset({35}),
        frozenset({API_VERSIONS}),
        "the broker does not support this version of ApiVersions, and returns v0 with its versions",
        "KIP-511",
    ),
    ErrorClass(
        "describe-fallback",
        frozenset({69}),
        frozenset({CONSUMER_GROUP_DESCRIBE}),
        "an admin client describes a classic group, then falls back to DescribeGroups",
        "KIP-848",
    ),
    ErrorClass(
        "member-id",
        frozenset({79}),
        frozenset({JOIN_GROUP}),
        "a member joins for the first time, then rejoins with the member id from the response",
        "KIP-394",
    ),
    ErrorClass(
        "rebalance",
        frozenset({27}),
        frozenset({JOIN_GROUP, SYNC_GROUP, HEARTBEAT, OFFSET_COMMIT, TXN_OFFSET_COMMIT}),
        "the group rebalances, and the member has to rejoin",
        "classic group protocol; KIP-447 for TxnOffsetCommit",
    ),
    ErrorClass(
        "member-epoch",
        frozenset({113}),
        frozenset({OFFSET_COMMIT, OFFSET_FETCH}),
        "the member epoch was bumped while the request was in flight",
        "KIP-848",
    ),
    ErrorClass(
        "coordinator",
        frozenset({14, 15, 16}),
        None,
        "a coordinator starts, loads its partition, or moves to another broker",
        "group coordinator protocol; KIP-98 for transactions",
    ),
    ErrorClass(
        "no-leader",
        frozenset({5}),
        frozenset({METADATA}),
        "a partition is being created, or elects a leader",
        "metadata protocol",
    ),
    ErrorClass(
        "offset-not-available",
        frozenset({78}),
        frozenset({LIST_OFFSETS}),
        "a new leader has no high watermark yet",
        "KIP-207",
    ),
    ErrorClass(
        "leader",
        frozenset({6, 74, 75}),
        None,
        "a leader is elected, and clients or replicas still have the old metadata",
        "metadata protocol; KIP-320 for leader epochs",
        needs_findings=True,
    ),
    ErrorClass(
        "controller",
        frozenset({41}),
        None,
        "a controller is elected, and brokers still connect to the old one",
        "KIP-500",
        needs_findings=True,
    ),
    ErrorClass(
        "fetch-session",
        frozenset({70, 71}),
        frozenset({FETCH}),
        "the broker evicted the fetch session, or restarted; the next Fetch is a full one",
        "KIP-227",
    ),
    ErrorClass(
        "share-session",
        frozenset({122, 123}),
        frozenset({SHARE_FETCH, SHARE_ACKNOWLEDGE}),
        "the broker evicted the share session, or restarted; the next ShareFetch opens another",
        "KIP-932",
    ),
    ErrorClass(
        "transaction",
        frozenset({51}),
        None,
        "the broker is still completing the previous transaction; the producer retries",
        "KIP-98",
    ),
    ErrorClass(
        "telemetry",
        frozenset({117}),
        frozenset({PUSH_TELEMETRY}),
        "the subscription to client metrics changed; the client gets the new one",
        "KIP-714",
    ),
)
CODES: Final = frozenset(code for each in CLASSES for code in each.codes)
"""All codes of all classes."""


def class_of(api_key: int | None, code: int) -> ErrorClass | None:
    """Return the class of an error in a response of an API; None for unexpected errors."""
    if code not in CODES:
        return None
    for each in CLASSES:
        if code in each.codes and (each.apis is None or api_key in each.apis):
            return each
    return None


def is_expected(api_key: int | None, codes: Iterable[int], *, findings: bool = False) -> bool:
    """Return whether all errors of a response are expected, by the exchange alone; there are some.
    `findings`: classes that need findings count as well, because the caller knows the findings."""
    for code in codes:
        found = class_of(api_key, code)
        if found is None or (found.needs_findings and not findings):
            return False
    return True
