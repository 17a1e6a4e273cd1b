"""Connections that a proxy forwards byte by byte: a capture has both of its sides."""

from collections.abc import Callable

from kafkascope.captures.build import Composer
from kafkascope.captures.model import Endpoint
from tests.kit.captures import Tape

CLIENT, FRONT, BACK, BROKER = (
    Endpoint("10.1.0.7", 40000),
    Endpoint("10.2.0.1", 9092),
    Endpoint("10.2.0.1", 51000),
    Endpoint("10.3.0.9", 19092),
)


LOCAL = tuple(Endpoint("127.0.0.1", port) for port in (40000, 9092, 51000, 19092))


def forwarded(
    ends: tuple[Endpoint, ...] = (CLIENT, FRONT, BACK, BROKER),
    *,
    rounds: int = 6,
    header: bytes = b"",
    late: bool = False,
    cut_at: int = 1460,
    change: Callable[[int, int, bytes], bytes] = lambda number, direction, data: data,
    both: Callable[[int, int, bytes], bytes] = lambda number, direction, data: data,
) -> Tape:
    """A client, a proxy that forwards its bytes, and a broker.

    `late`: the proxy connects when it has the first request. `cut_at`: segment size of the leg.
    `change`: what the leg carries in place of what the client's connection does. `both`: what both
    carry in place of the usual bytes.
    """
    tape = Tape()
    client = Composer(ends[0], ends[1], isn=(100, 900))
    leg = Composer(ends[2], ends[3], isn=(5000, 70), mss=cut_at)
    tape.add(client.open())
    if not late:
        tape.add(leg.open())
    for number in range(rounds):
        request = both(number, 0, b"request %d" % number * 40)
        response = both(number, 1, b"response %d" % number * 300)
        tape.add(client.send(0, request))
        if late and not number:
            tape.add(leg.open())
        tape.add(leg.send(0, (b"" if number else header) + change(number, 0, request)))
        tape.add(leg.send(1, change(number, 1, response)))
        tape.add(client.send(1, response))
        tape.now_ns += 5_000_000
    tape.add(client.close(0) + leg.close(0) + leg.close(1) + client.close(1))
    return tape
