"""Contents of a key log, and the connections that it decrypts."""

from __future__ import annotations

from collections import Counter, OrderedDict
from pathlib import Path
from typing import Final

from kafkascope.analyzer.reading.limits import LIMITS, ReadingLimits
from kafkascope.captures.inputs.keylogs import Limit
from kafkascope.captures.limits import LIMITS as CAPTURE_LIMITS
from kafkascope.captures.model import Closed, Opened, Tls
from kafkascope.captures.tls.keys.keylog import LABELS, KeyLog, LogLines

PIECE: Final = 1 << 20
OPENED: Final = "opened"
FAILED: Final = "handshake that failed"
SPARE: Final = frozenset(
    {b"EXPORTER_SECRET", b"EARLY_EXPORTER_SECRET", b"ECH_SECRET", b"ECH_CONFIG", b"RSA", *LABELS}
)
"""Labels that are shown as they are. Of a damaged line anything may stand in their place, secrets
too."""
OTHER: Final = "another label"


def kinds_of_lines(path: Path) -> tuple[Counter[str], bool]:
    """Count the lines of a key log by what they are; return also whether any is usable.
    `OSError`."""
    log, kinds = KeyLog(), Counter[str]()
    text, limit = LogLines(), Limit(log)
    with path.open("rb") as file:
        while data := file.read(PIECE):
            _count(text.add(data), log, kinds)
            limit.took(len(data))
    _count(text.finish(), log, kinds)
    return kinds, log.changes > 0


def _count(lines: list[bytes], log: KeyLog, kinds: Counter[str]) -> None:
    for line in lines:
        words, bad = line[: CAPTURE_LIMITS.keylog_line_bytes].split(), log.unusable
        log.take(line)
        if not words:
            continue
        if words[0].startswith(b"#"):
            kinds["comment"] += 1
        elif log.unusable > bad:
            kinds["not usable: cut, damaged, or no line of a key log"] += 1
        else:
            session = " Session-ID" * words[1].startswith(b"Session-ID:")
            kinds[words[0].decode() + session if words[0] in SPARE else OTHER] += 1


def connections_opened(
    captures: tuple[str, ...], path: str, limits: ReadingLimits = LIMITS
) -> Counter[str]:
    """Count the TLS connections of captures, by whether a key log opens them."""
    from kafkascope.analyzer.exchanges.offline import open_capture

    counts = _States(limits.ended_connections)
    with open_capture(captures, keylog=[path]) as capture:
        capture.watch = counts.saw
        for _ in capture.exchanges():
            pass
    return counts.finish()


class _States:
    """Counts connections when nothing more is learned of them: there may be millions."""

    def __init__(self, most: int) -> None:
        """`most`: connections that are kept when they are over."""
        self._most = most
        self._counts = Counter[str]()
        self._half: dict[int, Tls] = {}
        """Those of which one direction ended."""
        self._ended: OrderedDict[int, Tls] = OrderedDict()

    def saw(self, event: Opened | Closed) -> None:
        tls, number = event.connection.tls, event.connection.number
        if tls is None or isinstance(event, Opened) or number in self._ended:
            return
        first = self._half.pop(number, None)
        if first is None and event.direction is not None and event.how != "rst":
            self._half[number] = tls
            return
        self._ended[number] = tls
        if len(self._ended) > self._most:
            self._counts[_state(self._ended.popitem(last=False)[1])] += 1

    def finish(self) -> Counter[str]:
        for tls in (*self._half.values(), *self._ended.values()):
            self._counts[_state(tls)] += 1
        return self._counts


def _state(tls: Tls) -> str:
    if tls.result is not None and tls.result.outcome != "established":
        return FAILED
    return tls.error or OPENED
