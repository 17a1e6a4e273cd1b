"""Cuts of whole captures, and what has to stay of their rows."""

from pathlib import Path

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.model import Request, Response
from kafkascope.analyzer.transform.cut import Cutting
from kafkascope.analyzer.transform.cut_rewrites import Anonymous
from kafkascope.captures.inputs.spool import Spool


def told(row: Row) -> tuple[object, ...]:
    """What has to stay, apart from numbers of connections and packets."""
    return (
        *(row.time_ns, row.state, row.api_key, row.api_version, row.correlation_id, row.client_id),
        row.software,
        # Of bytes that are not Kafka's it is the size of a packet.
        row.request_bytes if row.state != "opaque" else None,
        *(row.response_bytes, row.latency_ns, row.topics, row.groups, row.errors, row.records),
        *(str(row.client_address), str(row.broker_address)),
    )


def messages_of(path: Path) -> list[Request | Response]:
    """Return the requests and responses of a capture in turn."""
    with open_capture([path]) as capture:
        sides = [side for each in capture.exchanges() for side in (each.request, each.response)]
    return [side for side in sides if side is not None]


def cut_to(path: Path, target: Path, *, anonymous: bool = False, keep=lambda each: True) -> Cutting:
    cutting = Cutting()
    with open_capture([path], spool=Spool()) as capture, target.open("wb") as file:
        capture.listener = cutting
        for exchange in capture.exchanges():
            if keep(exchange):
                cutting.add(exchange)
        cutting.add_others()
        rewrite = Anonymous() if anonymous else None
        cutting.write(file, capture.source.read, rewrite=rewrite)
    return cutting
