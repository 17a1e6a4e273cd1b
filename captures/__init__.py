"""Capture files and live packets to TCP streams. Knows nothing of Kafka; the only home of scapy."""

from kafkascope.captures.errors import CaptureError, CutShort, NotACapture, NotAllowed
from kafkascope.captures.files import Source, open_inputs
from kafkascope.captures.model import (
    Chunk,
    Closed,
    Connection,
    Endpoint,
    Gap,
    Opened,
    Packet,
    Piece,
    StreamEvent,
)
from kafkascope.captures.reassembly import Reassembler
from kafkascope.captures.spool import NotKept, Spool
from kafkascope.captures.statistics import Statistics
from kafkascope.captures.streams import streams
from kafkascope.captures.tcp import Segment, segment_of

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
