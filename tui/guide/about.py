"""Texts for F1: what each pane is for, and the keys that only it has."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkascope.tui.views.help import EXCHANGES


class About(NamedTuple):
    """The help of a pane."""

    title: str
    text: str
    keys: tuple[tuple[str, str], ...] = ()


PANES: Final = {
    "exchanges": About(
        "The list of exchanges",
        EXCHANGES,
        (
            ("Enter", "the detail of the exchange"),
            ("e E", "the next error or missing answer, the one before"),
            ("] [", "the next exchange on this connection, the one before"),
            ("a f", "a filter from the row under the cursor; follow what it is part of"),
            ("o v", "order by a column, the other way round"),
            ("A", "a field as a column"),
            ("m M ' \"", "mark, only marked, next mark, mark before"),
            ("i I", "ignore; only what is ignored"),
            ("; D", "comment; how two marked ones differ"),
            ("t T", "another way to write times; count from this row"),
            ("c x w", "copy, export, save as a capture"),
        ),
    ),
    "detail": About(
        "The detail of an exchange",
        "Each line is a field of the message as it is on the wire, by its name in the protocol; "
        "what a value stands for is behind it. The bytes of the field under the cursor light up "
        "in the pane beside. Records are read out of their batches, decompressed if need be; "
        "Context tells about the connection and the client.",
        (
            ("right left", "open, close"),
            ("Z z", "open all, close all"),
            ("r", "request or response"),
            ("R", "next tab"),
            ("a", "a filter that wants this value of this field"),
            ("y", "copy the value"),
        ),
    ),
    "hex": About(
        "The bytes",
        "The bytes of the message, the field under the cursor lit up. Move, or click on a byte, "
        "and the tree goes to the field that it belongs to. Compressed records have a space of "
        "bytes of their own.",
        (("arrows", "a byte or a line"), ("y", "copy the bytes of the field as hexadecimal")),
    ),
    "filter": About(
        "The filter",
        "A comparison is: field operator value. Operators are == != > < >= <= contains, ~ for a "
        "regular expression, in {a, b}; and, or, not, ( ) combine. A field alone asks whether it "
        "is there. Wireshark's names work, too. kafkascope fields lists all fields. Filters that "
        "need no message apply while you type, others with Enter.",
        (
            ("api == Produce and error != 0", "produce requests that failed"),
            ("excess > 250ms", "slow, without what clients asked to wait"),
            ("topic == orders and partition in {0, 3..5}", "of some partitions"),
            ("client.ip == 10.0.0.0/24 and not answered", "without an answer"),
            ("group == app and api in {JoinGroup, SyncGroup}", "a group's rebalances"),
            ('"timeout"', "a text in the summary"),
        ),
    ),
}
"""Id of a widget -> its help."""
