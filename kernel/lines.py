"""Writes pairs as lines of JSON: the values that each pair has of its own, and texts that it has in
common with others. What stands where comes from the declaration of columns
(`analyzer/exchanges/row_json.py`). Compiled by mypyc; the same source runs without.
"""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import i64

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
# Below it, floats of as many nanoseconds in milliseconds have all digits.
PLAIN: Final[i64] = 1_000_000_000_000_000
# Texts that pairs have in common, and seconds, that are kept for the next line.
MOST_KNOWN: Final = 4096
ZEROS: Final = [".", ".0", ".00", ".000", ".0000", ".00000"]


class JsonMember:
    """One member of the object, or a run of them."""

    def __init__(self, before: str, form: i64, field: i64) -> None:
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
        self.seconds: dict[int, str] = {}

    def forget(self) -> None:
        """Forget texts: a topic got a name."""
        self.known.clear()

    def of(self, items: list[Any]) -> list[str]:
        """Return the lines of exchanges, without line feeds."""
        out: list[str] = []
        for item in items:
            if isinstance(item, Pair) and item.is_ordinary():
                out.append(self.line(item))
            else:
                out.append(self.host.line(item))
        return out

    def line(self, pair: Pair) -> str:
        parts = self.parts(pair)
        parts.append("}")
        return "".join(parts)

    def parts(self, pair: Pair) -> list[str]:
        """Return the line of a pair in parts, without the brace at its end: more members may
        follow."""
        about = pair.about()
        known = self.known.get(about)
        if known is None:
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            texts, session, small = self.host.texts(pair)
            known = self.woven(texts), session
            if small:
                self.known[about] = known
        before: list[str] = known[0]
        parts: list[str] = []
        index: i64 = 0
        for member in self.own:
            parts.append(before[index])
            index += 1
            form = member.form
            if form == ID:
                parts.append(self.id(pair))
            elif form == FRAMES:
                parts.append(str(pair.packet))
                if pair.answered:
                    parts.append(",")
                    parts.append(str(pair.response_packet))
            else:
                value = pair.value(member.field)
                if value == ABSENT:
                    parts.append("null")
                elif form == NUMBER:
                    parts.append(str(value))
                elif form == TIME:
                    parts.append(self.time(value))
                elif value == 0:
                    parts.append("0" if form == SHORT_MILLIS else "0.0")
                else:
                    parts.append(millis(value, form == SHORT_MILLIS))
        parts.append(before[index])
        return parts

    def woven(self, texts: tuple[str, ...]) -> list[str]:
        """Return what stands before each own value, and after the last one: most of a line, once
        for all pairs that have it in common."""
        out: list[str] = []
        text = ""
        for member in self.members:
            text += member.before
            if member.form == RUN:
                text += texts[member.field]
            else:
                out.append(text)
                text = ""
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

    def time(self, time_ns: i64) -> str:
        """Return an instant, as `times.iso_ns` does."""
        seconds: i64 = time_ns // SECOND
        rest: i64 = time_ns % SECOND
        text = self.seconds.get(seconds)
        if text is None:
            if len(self.seconds) >= MOST_KNOWN:
                self.seconds.clear()
            text = self.seconds[seconds] = self.host.second(seconds)
        if not text:
            return ""
        # A 1 before the digits, cut off again: leading zeros without a format.
        if rest % 1000 != 0:
            return text + str(SECOND + rest)[1:] + "Z"
        return text + str(1_000_000 + rest // 1000)[1:] + "Z"


def place_bytes(place: i64) -> bytes:
    return int(place).to_bytes(8, "big")


def millis(value: i64, short: bool) -> str:
    """Return nanoseconds in milliseconds as JSON."""
    whole: i64 = value // 1_000_000
    rest: i64 = value % 1_000_000
    if rest == 0 and short:
        return str(whole)
    if not (value == 0 or 1000 <= value < PLAIN):
        return exact_millis(value)
    # Clocks of captures have microseconds, so that three of six digits are there at most.
    digits: i64 = 6
    while rest % 10 == 0 and digits > 1:
        rest //= 10
        digits -= 1
    text = str(rest)
    return str(whole) + ZEROS[digits - len(text)] + text


def exact_millis(value: i64) -> str:
    """Return the same of a number that has an exponent, or not all of its digits."""
    import orjson

    # Compiled, a division of integers rounds each of them to 53 bits first; Python's does not.
    exact: Any = value
    text: str = orjson.dumps(exact / 1_000_000).decode()
    return text
