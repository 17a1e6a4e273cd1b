"""Writes pairs as lines of JSON: the values that each pair has of its own, and texts that it has in
common with others. What stands where comes from the declaration of columns
(`analyzer/exchanges/row_json.py`). Compiled by mypyc; the same source runs without.
"""

from __future__ import annotations

from typing import Any, Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from kafkascope.kernel.json_values import PADDED, write_millis, write_number
from kafkascope.kernel.pairs import Pair
from kafkascope.kernel.walker import ABSENT

# Forms of members.
NUMBER: Final[i64] = 1
# Nanoseconds as milliseconds, a float.
MILLIS: Final[i64] = 2
# The same, an integer where it is a whole number.
SHORT_MILLIS: Final[i64] = 3
TIME: Final[i64] = 4
ID: Final[i64] = 5
FRAMES: Final[i64] = 6
# Members that others have, too.
RUN: Final[i64] = 7

SECOND: Final[i64] = 1_000_000_000
# Texts that pairs have in common, and seconds, that are kept for the next line.
MOST_KNOWN: Final = 4096


class JsonMember:
    """One member of the object, or a run of them."""

    def __init__(self, before: bytes, form: i64, field: i64) -> None:
        self.before = before
        """What stands before its value."""
        self.form: i64 = form
        self.field: i64 = field
        """As `Pair.value` takes it; of a run, its index."""


class JsonLines:
    """Writes the lines of one capture."""

    def __init__(self, members: list[JsonMember], host: Any) -> None:
        """`host` has the texts of runs, the hashes that ids begin with, seconds as text, and writes
        what is no ordinary pair."""
        self.members = members
        self.own = [member for member in members if member.form != RUN]
        self.host = host
        self.known: dict[Any, Any] = {}
        """(what stands before each own value and after the last, what the key names by its
        identity) by `Pair.about`."""
        self.hashes: dict[int, Any] = {}
        self.seconds: dict[int, bytes] = {}

    def forget(self) -> None:
        """Forget texts: a topic got a name."""
        self.known.clear()

    def of(self, items: list[Any]) -> bytes:
        """Return the lines of exchanges."""
        out = BytesWriter()
        for item in items:
            if isinstance(item, Pair) and item.is_ordinary():
                self.write(out, item)
                out.write(b"}\n")
            else:
                line: bytes = self.host.line(item)
                out.write(line)
        return out.getvalue()

    def write(self, out: BytesWriter, pair: Pair) -> None:
        """Write the line of a pair without the brace at its end: more members may follow."""
        about = pair.about()
        known = self.known.get(about)
        if known is None:
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            texts, session, small = self.host.texts(pair)
            known = self.woven(texts), session
            if small:
                self.known[about] = known
        before: list[bytes] = known[0]
        index: i64 = 0
        for member in self.own:
            out.write(before[index])
            index += 1
            form = member.form
            if form == ID:
                out.write(self.id(pair).encode("ascii"))
            elif form == FRAMES:
                write_number(out, pair.packet)
                if pair.answered:
                    out.write(b",")
                    write_number(out, pair.response_packet)
            else:
                value = pair.value(member.field)
                if value == ABSENT:
                    out.write(b"null")
                elif form == NUMBER:
                    write_number(out, value)
                elif form == TIME:
                    self.write_time(out, value)
                else:
                    write_millis(out, value, form == SHORT_MILLIS)
        out.write(before[index])

    def woven(self, texts: tuple[bytes, ...]) -> list[bytes]:
        """Return what stands before each own value, and after the last one: most of a line, once
        for all pairs that have it in common."""
        out: list[bytes] = []
        text = b""
        for member in self.members:
            text += member.before
            if member.form == RUN:
                text += texts[member.field]
            else:
                out.append(text)
                text = b""
        out.append(text)
        return out

    def id(self, pair: Pair) -> str:
        file = pair.file
        start = self.hashes.get(file)
        if start is None:
            start = self.host.hash_of(file)
            self.hashes[file] = start
        if start is None:
            found: str = self.host.identify(pair)
            return found
        # The hash of the input is not made anew for each line.
        hashed = start.copy()
        hashed.update(place_bytes(pair.place))
        text: str = hashed.hexdigest()
        return text

    def write_time(self, out: BytesWriter, time_ns: i64) -> None:
        """Write an instant, as `times.iso_ns` does."""
        seconds: i64 = time_ns // SECOND
        rest: i64 = time_ns % SECOND
        text = self.seconds.get(seconds)
        if text is None:
            if len(self.seconds) >= MOST_KNOWN:
                self.seconds.clear()
            text = self.seconds[seconds] = self.host.second(seconds)
        if text:
            out.write(text)
            out.write(PADDED[rest // 1_000_000])
            out.write(PADDED[rest // 1000 % 1000])
            if rest % 1000 != 0:
                out.write(PADDED[rest % 1000])
            out.write(b"Z")


def place_bytes(place: i64) -> bytes:
    return int(place).to_bytes(8, "big")
