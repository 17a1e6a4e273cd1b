"""Metrics that clients push (KIP-714): OpenTelemetry MetricsData, compressed."""

from __future__ import annotations

from typing import Any, Final

from kafkascope.dissectors.embedded.model import Embedded
from kafkascope.dissectors.records.compression import decompress
from kafkascope.extras import missing

LIMIT: Final = 16 << 20
"""Bytes of metrics when expanded; brokers take 1 MB (telemetry.max.bytes) of them compressed."""


def metrics(value: bytes, compression: int) -> Embedded:
    """Decode metrics to the JSON form of their protobuf message; needs the extra `telemetry`."""
    data = decompress(compression, value, LIMIT)
    if note := missing("decoding the metrics of PushTelemetry"):
        return Embedded("OTLP metrics", {"bytes": len(data)}, note)
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

    try:
        body: Any = MessageToDict(MetricsData.FromString(data))
    except (DecodeError, ValueError, RecursionError) as error:
        return Embedded("OTLP metrics", {"bytes": len(data)}, f"no MetricsData: {error}")
    return Embedded("OTLP metrics", body)
