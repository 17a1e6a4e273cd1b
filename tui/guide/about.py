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
            ("Enter", "Open the details"),
            ("e E", "Next error or missing response, previous"),
            ("] [", "Next exchange on this connection, previous"),
            ("a f", "Filter by the row; follow its connection, client, group, ..."),
            ("o v", "Sort by a column, reverse"),
            ("A", "Toggle a column"),
            ("m M ' \"", "Toggle mark, only marked, next mark, previous"),
            ("i I", "Toggle ignore, only ignored"),
            ("; D", "Comment; compare two marked exchanges"),
            ("t T", "Next time format; count times from this row"),
            ("c x w", "Copy, export, save as a capture"),
        ),
    ),
    "detail": About(
        "The details of an exchange",
        "Each line is a field of the message, by its name in the protocol, with the meaning of the "
        "value behind it. The bytes of the field under the cursor are highlighted in the bytes "
        "pane. Records are read from their batches and decompressed. Context describes the "
        "connection and the client.",
        (
            ("right left", "Expand, collapse"),
            ("Z z", "Expand all, collapse all"),
            ("r", "Switch between request and response"),
            ("R", "Next tab"),
            ("a", "Filter by this field and value"),
            ("y", "Copy the value"),
        ),
    ),
    "hex": About(
        "The bytes",
        "The bytes of the message, with the field under the cursor highlighted. Move, or click a "
        "byte, to select its field in the details. Decompressed records are a view of their own.",
        (("arrows", "Move by one byte or line"), ("y", "Copy the bytes of the field as hex")),
    ),
    "filter": About(
        "The filter",
        "A comparison is: field operator value. Operators are == != > < >= <= contains, ~ for a "
        "regular expression, in {a, b}. Combine comparisons with and, or, not, ( ). A field alone "
        "is true if it is present. Wireshark's field names work as well; kafkascope fields lists "
        "all fields. Filters on columns apply while you type; filters on decoded messages apply "
        "with Enter. On other screens, L applies the filter.",
        (
            ("api == Produce and error != 0", "failed produce requests"),
            ("excess > 250ms", "slow, long polls excluded"),
            ("topic == orders and partition in {0, 3..5}", "some partitions"),
            ("client.ip == 10.0.0.0/24 and not answered", "without a response"),
            ("group == app and api in {JoinGroup, SyncGroup}", "rebalances of a group"),
            ('"timeout"', "text in the summary"),
        ),
    ),
}
"""Id of a widget -> its help."""
