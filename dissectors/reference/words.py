"""Closed lists of the words that Kafka itself puts into text fields.

They tell these from names that people gave: a value that is not on the list of its field is one.


A field uses a list with `word=`; fields with `enum=` have the values of that set, and what `MORE`
adds to it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from kafkascope.dissectors.reference.codes import ENUMS
from kafkascope.dissectors.reference.config_secrets import CONFIG_NAMES
from kafkascope.dissectors.schema import Field


class Words(NamedTuple):
    """A closed list."""

    noun: str
    """What such a value is; pseudonyms of others begin with it."""
    values: frozenset[str]
    """In lower case."""
    stems: tuple[str, ...] = ()
    """Begins of sentences that go on with names; in lower case."""


def _words(noun: str, text: str) -> Words:
    return Words(noun, frozenset(text.lower().split()))


WORDS: Final[dict[str, Words]] = {
    "Assignor": _words(
        "assignor",
        """
        range roundrobin uniform simple sticky cooperative-sticky stream streams highly_available
        """,
    ),
    "ClientSoftware": _words(
        "software",
        """
        apache-kafka-java librdkafka rdkafka confluent-kafka-python confluent-kafka-go
        confluent-kafka-dotnet confluent-kafka-javascript kafka-python aiokafka kgo franz sarama
        kafka-go kafkajs node-rdkafka rskafka rust-rdkafka ruby-kafka racecar brod kroxylicious
        unknown
        """,
    ),
    "ConfigName": Words("config", frozenset(name.lower() for name in CONFIG_NAMES)),
    "ConfigValue": _words(
        "value",
        """
        true false null none delete compact delete,compact compact,delete
        producer uncompressed gzip snappy lz4 zstd CreateTime LogAppendTime latest earliest
        read_committed read_uncommitted required requested
        plaintext ssl sasl_plaintext sasl_ssl TLSv1.2 TLSv1.3 TLSv1.2,TLSv1.3 TLSv1.3,TLSv1.2
        jks pkcs12 pem classic consumer streams share
        """,
    ),
    "Feature": _words(
        "feature",
        """
        metadata.version kraft.version transaction.version group.version share.version
        streams.version eligible.leader.replicas.version test.feature.version
        """,
    ),
    "Listener": _words(
        "listener",
        """
        plaintext ssl sasl_plaintext sasl_ssl controller broker internal external client
        replication
        """,
    ),
    "MetricName": _words(
        "metric",
        """
        * org.apache.kafka. org.apache.kafka.producer. org.apache.kafka.consumer.
        org.apache.kafka.admin.
        """,
    ),
    "PrincipalType": _words("principal", "User"),
    "ProtocolName": _words(
        "protocol",
        """
        range roundrobin sticky cooperative-sticky stream default compatible sessioned
        copartition v0
        """,
    ),
    "QuotaKey": _words(
        "quota",
        """
        producer_byte_rate consumer_byte_rate request_percentage controller_mutation_rate
        connection_creation_rate
        """,
    ),
    "Reason": Words(
        "",
        frozenset(
            {
                "beginning to manage the group lifecycle",
                "client leaving group per normal operation",
                "consumer poll timeout has expired.",
                "consumer pro-actively leaving the group",
                "group is already rebalancing",
                "member was removed by an admin",
                "the consumer is being closed",
                "the consumer unsubscribed from all topics",
            }
        ),
        (
            "cached metadata has changed from ",
            "encountered ",
            "member was removed by an admin: ",
            "need to re-join with the given member-id: ",
            "need to revoke partitions ",
            "rebalance enforced by user",
            "rebalance failed due to ",
            "scheduled probing rebalance",
            "the subscription has changed from ",
        ),
    ),
    "ZooKeeperScheme": _words("scheme", "world auth digest ip host sasl x509 super"),
    "SoftwareVersion": _words("version", "unknown"),
}

MORE: Final[dict[str, str]] = {
    "ClassicGroupProtocolType": "sr share streams",
    "GroupState": "AwaitingSync Initializing",
    "SaslMechanism": "AWS_MSK_IAM",
}
"""Values of other implementations in fields of a set, and states of older releases."""

_VERSION: Final = re.compile(
    r"v?\d{1,4}(\.\d{1,5}){0,3}"
    r"([-+.]?(rc|alpha|beta|dev|post|snapshot|ccs|ce|rdkafka|final)[-.]?"
    r"(\d{1,4}(\.\d{1,5}){0,3})?){0,2}",
    re.IGNORECASE | re.ASCII,
)
"""Numbers, and the words beside them in versions of libraries."""


@cache
def of_enum(name: str) -> Words:
    """Return the list of a set of named values in `codes.ENUMS`."""
    found = (str(value).lower() for value in ENUMS.get(name, ()))
    return Words("word", frozenset((*found, *MORE.get(name, "").lower().split())))


def words_of(field: Field) -> Words | None:
    if field.word:
        return WORDS[field.word]
    return of_enum(field.enum) if field.enum else None


def own_part(words: Words, value: str) -> int:
    """Return how many characters at the start of a text are Kafka's: all of a word."""
    if is_word(words, value):
        return len(value)
    lower = value.lower()
    return max((len(stem) for stem in words.stems if lower.startswith(stem)), default=0)


def is_word(words: Words, value: str) -> bool:
    """Whether a text is on a list, in whatever case; an empty one says nothing."""
    if words is WORDS["SoftwareVersion"] and _VERSION.fullmatch(value):
        return True
    return not value or value.lower() in words.values
