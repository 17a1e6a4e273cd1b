"""Limits of memory, drawing and waits in the terminal UI."""

from __future__ import annotations

from typing import Final, NamedTuple


class ScreenLimits(NamedTuple):
    """Names that end in no unit are counts."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # --- rows and records in memory

    # Batches of an input with an end; beyond it the list ends and says so.
    listed_bytes: int = 384 << 20
    # Rows that are decided once more when another schema is known.
    undecided_rows: int = 100_000
    # Ends of connections: the last ones, which `connections` draws.
    connection_ends: int = 1_000_000
    # Different keys of a topic, bytes of one (longer ones differ by a hash), schemas of a topic.
    record_keys: int = 50_000
    record_key_bytes: int = 200
    record_schemas: int = 1_000
    # A key or value that is decoded for its pane: brokers take messages of 1 MB by default.
    payload_bytes: int = 8 << 20

    # --- lines

    # Packets that are read again for one exchange. Frames of megabytes have thousands.
    packets: int = 200
    # Lines of a tree that "open all" opens.
    opened_lines: int = 20_000
    # Exchanges of a connection in its diagram; a filter shows all.
    drawn_exchanges: int = 2_000
    # Topic ids without a name that are offered to be named; values of a list of an exchange that
    # become a filter each.
    unnamed_ids: int = 1_000
    followed_values: int = 6
    # Client ids that the filter of an edge of the map names; of more the topic alone selects.
    map_client_ids: int = 50
    # Completions that are shown at once.
    completions: int = 8
    # Width of the sentence in a pane without lines, as long as lines of a book may be.
    sentence_columns: int = 90
    # Views to go back to; then the oldest but the first goes.
    views: int = 64

    # --- settings

    # Colour rules; Wireshark has some twenty.
    colour_rules: int = 200
    # Files and filters that were used last.
    recent_files: int = 20
    recent_filters: int = 200

    # --- other processes: the proxy, the browser

    # A line of the proxy's control channel (a held body may be large); the line before a stream.
    control_line_bytes: int = 64 << 20
    greeting_bytes: int = 1 << 16
    # The head of a request from a browser, which sends a kilobyte; nginx takes 8 KB a line.
    request_head_bytes: int = 16 << 10
    # Columns and lines of a terminal in a browser.
    terminal_cells: int = 1_000


LIMITS: Final = ScreenLimits()
