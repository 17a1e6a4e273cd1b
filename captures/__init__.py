"""Capture files and live packets to TCP streams. Knows nothing of Kafka; the only home of scapy."""

from kafkascope.captures.errors import CaptureError, CutShort, NotACapture, NotAllowed
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.spool import NotKept, Spool
from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import (
    Chunk,
    Closed,
    Connection,
    Endpoint,
    Gap,
    Opened,
    Packet,
    Piece,
    Statistics,
    StreamEvent,
)
from kafkascope.captures.packets.tcp import Segment, segment_of
from kafkascope.captures.streams.reassembly import Reassembler
from kafkascope.captures.streams.streams import streams

__all__ = [
    "CaptureError",
    "Chunk",
    "Closed",
    "Connection",
    "CutShort",
    "Endpoint",
    "Gap",
    "NotACapture",
    "NotAllowed",
    "NotKept",
    "Opened",
    "Packet",
    "Piece",
    "Reassembler",
    "Segment",
    "Source",
    "Spool",
    "Statistics",
    "StreamEvent",
    "open_inputs",
    "segment_of",
    "streams",
]
