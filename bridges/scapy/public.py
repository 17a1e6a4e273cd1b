"""Kafka as a layer of scapy: `from kafkascope.scapy import Kafka` (docs/scapy.md).

Importing this binds it to TCP: port 9092, and other ports by content.
"""

from typing import Any

from kafkascope.bridges.scapy import layers, tcp
from kafkascope.bridges.scapy.layers import Kafka, KafkaMessage, KafkaUndecoded, layer_of

__all__ = ["Kafka", "KafkaMessage", "KafkaUndecoded", "layer_of"]

tcp.bind()


def __getattr__(name: str) -> Any:
    """Return the class of a message at a version: `FetchRequest12`."""
    return getattr(layers, name)
