"""The steps of `kafkascope demo --tour`, as data: a question, the key to press, what to see."""

from __future__ import annotations

from typing import Final, NamedTuple


class Step(NamedTuple):
    """A step of the tour, which is reached when the screen of that number is shown."""

    question: str
    press: str
    see: str
    screen: int | None = None


STEPS: Final = (
    Step(
        "One minute of traffic from an online shop. A row is a request with its response. What is"
        " wrong?",
        "7",
        "Findings, most severe first. Up and down select one; its cause and fix are below. ▸ marks"
        " causes with consequences: Enter expands them.",
        7,
    ),
    Step(
        "Which listener is unreachable?",
        'down to "Broker 3 advertises", Enter',
        "The evidence: Metadata responses that send reports-ui to 172.17.0.4:29092, an address"
        " inside a container. Nothing answers there.",
        1,
    ),
    Step(
        "Where is it in the bytes?",
        "Enter, then r",
        "The decoded response. The field under the cursor is highlighted in the bytes pane (tab). R"
        " shows records and packets. Esc goes back, as often as you like.",
    ),
    Step(
        "Which client breaks on Kafka 4?",
        "3",
        "Clients with library and API versions. legacy-export supports Fetch up to v3 and Produce"
        " up to v2, removed in Kafka 4.0. crm-sync never completed authentication.",
        3,
    ),
    Step(
        "Why does the group rebalance?",
        "5, down to billing, Enter",
        "One lane for each member: J join, = stable, x missed heartbeats, l left. Below: each"
        " rebalance with its cause: joined, expired, left.",
        5,
    ),
    Step(
        "Slow, or waiting on purpose?",
        "6",
        "Latency and excess. Fetch waits because its client requests it; excess leaves that out."
        " Produce was slow while broker 2 stalled.",
        6,
    ),
    Step(
        "Who gets these errors?",
        "1, then e a few times",
        "e goes to the next error or missing response, f follows its connection, client or group, a"
        " filters by the value under the cursor.",
        1,
    ),
    Step(
        "And my own traffic?",
        "Q to quit, then: sudo tcpdump -i any -s 0 -w my.pcap port 9092",
        "kafkascope my.pcap opens it, kafkascope check my.pcap prints findings with an exit code"
        " for CI, kafkascope report my.pcap -o my.html writes a report. ? lists all keys.",
    ),
)
