"""Topic names from the metadata log: brokers of a KRaft cluster fetch it as records, and it names
every topic that later requests give by id only (KIP-516, KIP-500)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.topics import CLUSTER_METADATA
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import Partial, batches, open_batch

if TYPE_CHECKING:
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.topics import TopicNames

FETCH: Final = 1
NAME, ID = CLUSTER_METADATA
TOPIC_RECORD: Final = "TopicRecord"


def learn_from_log(exchange: Exchange, names: TopicNames) -> None:
    """Learn the topics that a fetched piece of the metadata log creates."""
    if exchange.api_key != FETCH or exchange.response is None:
        return
    facts = exchange.facts
    if facts is not None and NAME not in facts.topics and ID not in facts.topic_ids:
        return
    body = exchange.response.body
    if body is None:
        return
    for topic in body["responses"]:
        if topic.get("topic_id") == ID or topic.get("topic") == NAME:
            break
    else:
        return
    # Few captures have this log; others do not load the modules that it needs.
    from kafkascope.analyzer.exchanges.records import fields_of

    for field in fields_of(exchange, names):
        if field.topic == NAME:
            _learn(field.data, names)


def _learn(data: bytes, names: TopicNames) -> None:
    from kafkascope.dissectors.embedded.internal import decode

    try:
        for batch in batches(data):
            if isinstance(batch, Partial) or batch.control:
                continue
            for record in open_batch(data, batch).records:
                found = decode(NAME, record.key, record.value)
                value = None if found is None else found.value
                if value is not None and value.message == TOPIC_RECORD:
                    names.learn(value.body["topic_id"], value.body["name"])
    except DissectError:
        # The records command reports damage; names are optional here.
        return
