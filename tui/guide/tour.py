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
        "This is a minute of a shop's Kafka: one row is a request with its answer. What is wrong?",
        "7",
        "Findings, the worst first. Up and down choose one; below it stands what to do. Where ▸"
        " stands others followed: Enter opens them.",
        7,
    ),
    Step(
        "Which broker address was wrong?",
        'down to "Broker 3 advertises", then Enter',
        "Its evidence: Metadata answers that send reports-ui to 172.17.0.4:29092, an address inside"
        " of a container. Nobody answers there.",
        1,
    ),
    Step(
        "Where does it stand in the bytes?",
        "r for the answer, then tab",
        "The answer, decoded. The field under the cursor lights up among the bytes at the right;"
        " b shows data decompressed, R leads to records and packets. Esc in / clears the filter.",
    ),
    Step(
        "Which client breaks on Kafka 4?",
        "3",
        "Clients with library and API versions. legacy-export knows Fetch only up to version 3 and"
        " Produce up to 2, which Kafka 4.0 removed; crm-sync never got past its login.",
        3,
    ),
    Step(
        "Why did the group rebalance?",
        "5, then to billing",
        "One lane per member: J joins, = works, x fell silent, l left. Below it each rebalance with"
        " its cause: joined, expired, left.",
        5,
    ),
    Step(
        "Slow, or asked to wait?",
        "6",
        "Latency and excess. Fetch waits because its client asks it to; excess is what nobody asked"
        " for. Produce was slow while broker 2 stood still.",
        6,
    ),
    Step(
        "Whose errors are these?",
        "1, then e a few times",
        "e goes to the next error or missing answer, f follows its connection, client or group, a"
        " makes a filter of the value under the cursor.",
        1,
    ),
    Step(
        "And my own traffic?",
        "q to leave, then: sudo tcpdump -i any -s 0 -w my.pcap port 9092",
        "kafkascope my.pcap looks at it, kafkascope check my.pcap tells the findings with an exit"
        " code for CI, kafkascope report my.pcap -o my.html makes a page of it. ? lists all keys.",
    ),
)
