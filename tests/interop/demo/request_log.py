"""Makes `captures/logs/demo.log.zst` of the demo capture: `python -m
tests.interop.demo.request_log`.

The exchanges are printed as a broker of 3.9 would have logged them, all brokers in one file. What a
capture does not tell is made up: the broker's own time is split between its queues and the handler.
"""

from collections.abc import Iterator
from typing import Final

from zstandard import ZstdCompressor

from kafkascope.analyzer.bodies.waits import WAITING
from kafkascope.analyzer.conversation.phases import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.model import Exchange, Request, Response
from kafkascope.analyzer.requestlog import model, printing
from tests.kit.samples import SAMPLES

SOURCE: Final = SAMPLES / "demo.pcap.zst"
TARGET: Final = SAMPLES.parent / "logs" / "demo.log.zst"
MS: Final = 1_000_000
SHARES: Final = (0.05, 0.04, 0.06)
"""Of the queues and the send in the time that was not asked for."""


def line_of(exchange: Exchange) -> tuple[int, bytes]:
    """Return the time of a line in ns, and the line."""
    took_ns = exchange.latency_ns or 100_000
    wait_ns = min(exchange.wait_ns, took_ns)
    if exchange.api_key not in WAITING:
        # Behind a long poll: the broker read it when that was answered.
        took_ns, wait_ns = took_ns - wait_ns, 0
    end_ns = exchange.time_ns + (exchange.latency_ns or took_ns)
    took_ns, wait_ns = _micros(took_ns), _micros(wait_ns)
    request_queue_ns, response_queue_ns, send_ns = (
        _micros((took_ns - wait_ns) * share) for share in SHARES
    )
    local_ns = took_ns - wait_ns - request_queue_ns - response_queue_ns - send_ns
    throttle_ns = (exchange.response_body or {}).get("throttle_time_ms", 0) * MS
    name, _, version = exchange.software.partition(" ")
    user, number = exchange.user, str(exchange.connection.number)
    (broker, port), (client, client_port) = exchange.broker, exchange.client
    assert exchange.api_key is not None
    assert exchange.api_version is not None
    assert exchange.correlation_id is not None
    completed = model.Completed(
        form="json",
        written_ns=end_ns // MS * MS,
        level="DEBUG",
        total_ns=took_ns,
        times=model.BrokerTimes(
            request_queue_ns, local_ns, wait_ns, response_queue_ns, send_ns, throttle_ns
        ),
        api_key=exchange.api_key,
        api_name=exchange.api,
        api_version=exchange.api_version,
        correlation_id=exchange.correlation_id,
        client_id=exchange.client_id,
        forwarded=False,
        deprecated=False,
        connection=model.LoggedConnection((broker, port), (client, client_port), number),
        security_protocol="SASL_PLAINTEXT" if user else "PLAINTEXT",
        principal=f"User:{user or 'ANONYMOUS'}",
        listener="SASL" if user else "PLAINTEXT",
        software_name=name,
        software_version=version,
        request=_body(exchange.request),
        response=_body(exchange.response),
        record_sizes={},
        conversions_ns=0,
        temporary_bytes=0,
    )
    return end_ns, printing.line_of(completed, with_records=True)


def _micros(time_ns: float) -> int:
    return round(time_ns / 1000) * 1000


def _body(side: Request | Response | None) -> model.LoggedBody:
    decoded = None if side is None else side.decoded
    if decoded is None:
        return model.LoggedBody(None, None, model.NOT_LOGGED)
    return model.LoggedBody(decoded.body, decoded.layout, "")


def lines() -> Iterator[bytes]:
    with open_capture([SOURCE]) as capture:
        exchanges = list(capture.exchanges())
        # What comes before and with a login has no line.
        logins = {each.connection.number for each in exchanges if each.api_key == SASL_HANDSHAKE}
        found = [
            line_of(each)
            for each in exchanges
            if not (each.api_key == API_VERSIONS and each.connection.number in logins)
            and each.state in ("answered", "no-reply")
            and each.api_key not in (None, SASL_HANDSHAKE, SASL_AUTHENTICATE)
            and each.request is not None
            and each.request.decoded is not None
        ]
    return (line for _, line in sorted(found))


def main() -> None:
    text = b"".join(line + b"\n" for line in lines())
    TARGET.write_bytes(ZstdCompressor(level=19).compress(text))


if __name__ == "__main__":
    main()
