"""Capture files and live packets to TCP streams. Knows nothing of Kafka; the only home of scapy."""

from captures.errors import CaptureError, CutShort, NotACapture, NotAllowed
from captures.files import Source, open_inputs
from captures.model import (
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
from captures.reassembly import Reassembler
from captures.spool import NotKept, Spool
from captures.statistics import Statistics
from captures.streams import streams
from captures.tcp import Segment, segment_of

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
