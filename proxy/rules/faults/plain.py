"""Actions with few arguments or none: drop, hold, close, wait, cut, corrupt, repeat."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final, Self

from kafkascope.analyzer.bodies.facts import attributes
from kafkascope.analyzer.filter.values import duration, size
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.codec.walk import changed
from kafkascope.dissectors.layout import BytesWire, Slot
from kafkascope.dissectors.registry import APIS, Decoded, layout_of
from kafkascope.proxy.rules.faults.error_code import ErrorAction
from kafkascope.proxy.rules.faults.fault import Action, FaultError
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.verdicts import (
    BROKER,
    CLIENT,
    Close,
    Delay,
    Drop,
    Hold,
    Replace,
    Throttle,
    Verdict,
)

MAGIC_AT: Final = 16
# Where the checksum stands, by magic.
CRC_AT: Final = {0: 12, 1: 12, 2: 17}
METADATA: Final = 3
UNKNOWN_MEMBER_ID: Final = 25


def _always(
    name: str,
    what: str,
    verdict: Verdict,
    at: tuple[int, ...] = (CLIENT, BROKER),
    whole_frame: bool = False,
) -> type[Action]:
    class Always(Action):
        word = usage = name
        doc = what
        sides = at
        whole = whole_frame

        def act(self, frame: InterceptedFrame) -> Verdict:
            return verdict

    return Always


DropAction: Final = _always(
    "drop",
    "drop the response, although the broker processed the request; on request: the request",
    Drop(),
    (BROKER, CLIENT),
)
BlackHoleAction: Final = _always(
    "black-hole", "stop reading the connection, which stays open", Hold(forever=True)
)
HoldAction: Final = _always(
    "hold", "wait until the frame is released, dropped, or edited", Hold(), whole_frame=True
)
ResetAction: Final = _always("reset", "send RST to both sides instead of the frame", Close("reset"))
CloseAction: Final = _always("close", "send FIN to both sides instead of the frame", Close("fin"))
HalfCloseAction: Final = _always(
    "half-close", "send FIN to the receiver only", Close("half"), (BROKER, CLIENT)
)


class CorruptAction(Action):
    """Flips bits in the checksum of the first batch of each partition."""

    word = usage = "corrupt-crc"
    doc = "break the checksum of each partition's first batch (Fetch; on request: Produce)"
    sides = (BROKER, CLIENT)
    whole = True

    def can_harm(self, key: int, version: int, side: int) -> bool:
        kind = "Request" if side == CLIENT else "Response"
        return "blobs" in attributes(layout_of(f"{APIS[key].name}{kind}", version))

    def changed(self, frame: InterceptedFrame, decoded: Decoded) -> Body | None:
        broken = changed(decoded.layout, decoded.body, _corrupt)
        return None if broken == decoded.body else broken


def _corrupt(slot: Slot, value: Any, around: Mapping[str, Any]) -> Any:
    if not (isinstance(slot.wire, BytesWire) and slot.wire.records and len(value) > 21):
        return value
    at = CRC_AT.get(value[MAGIC_AT])
    return value if at is None else value[:at] + bytes((value[at] ^ 0xFF,)) + value[at + 1 :]


class DelayAction(Action):
    """Delays the frame, by a fixed or random time."""

    word = "delay"
    usage = "delay TIME | delay TIME..TIME | delay normal MEAN DEVIATION"
    doc = "delay the frame, and those after it on the connection"

    def __init__(self, low_ns: int, high_ns: int, shape: str, text: str) -> None:
        self._low, self._high, self._shape, self.text = low_ns, high_ns, shape, text
        self._chance = random.Random(low_ns ^ high_ns)

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """`100ms`, `50ms..200ms` (each as likely), `normal 100ms 20ms`."""
        text = " ".join(words)
        if len(words) == 3 and words[0] == "normal":
            return cls(duration(words[1]), duration(words[2]), "normal", text)
        if len(words) != 1:
            raise cls.misused(words)
        low, dots, high = words[0].partition("..")
        first = duration(low)
        last = duration(high) if dots else first
        if first < 0 or last < first:
            raise FaultError(f"{words[0]!r} is not a duration")
        return cls(first, last, "uniform", text)

    def act(self, frame: InterceptedFrame) -> Delay:
        if self._shape == "normal":
            return Delay(max(0, int(self._chance.gauss(self._low, self._high))))
        return Delay(self._chance.randint(self._low, self._high))


class ThrottleAction(Action):
    """Forwards frames slowly."""

    word = "throttle"
    usage = "throttle SIZE/s"
    doc = "limit the rate of the frame"

    def __init__(self, bytes_per_s: int, text: str) -> None:
        self._rate, self.text = bytes_per_s, text

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """`100KB/s`, `1MiB/s`."""
        text = " ".join(words)
        amount, slash, unit = text.partition("/")
        if not slash or unit.strip() != "s" or size(amount) < 1:
            raise FaultError(f"{cls.usage}, as in 100KB/s, not {text!r}")
        return cls(size(amount), text)

    def act(self, frame: InterceptedFrame) -> Throttle:
        return Throttle(float(self._rate))


class TruncateAction(Action):
    """Cuts a frame short, then closes the connection."""

    word = "truncate"
    usage = "truncate BYTES"
    doc = "forward this many bytes, size field included, then close the connection"
    sides = (BROKER, CLIENT)
    whole = True

    def __init__(self, first: int) -> None:
        self._first, self.text = first, str(first)

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """`100`, `4KB`."""
        if len(words) != 1:
            raise cls.misused(words)
        return cls(size(words[0]))

    def act(self, frame: InterceptedFrame) -> Close:
        return Close("fin", max(0, self._first))


class StaleAction(Action):
    """Repeats the first response to the same Metadata request, which knows old leaders."""

    word = usage = "stale-metadata"
    doc = "answer a Metadata request with its first response"
    sides = (BROKER,)
    whole = True

    def __init__(self) -> None:
        self._first: dict[tuple[object, ...], bytes] = {}

    def can_harm(self, key: int, version: int, side: int) -> bool:
        return key == METADATA

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        if frame.key != METADATA or frame.payload is None:
            return None
        body = repr(frame.request.body) if frame.request is not None else ""
        key = (frame.version, frame.context.advertise_host, body)
        known = self._first.get(key)
        if known is not None:
            return Replace(frame.payload[:4] + known[4:])
        if len(self._first) < frame.context.hub.limits.stale_responses:
            self._first[key] = frame.payload
        return None


class MemberAction(Action):
    """Answers heartbeats as a coordinator does that has lost the member."""

    word = "member"
    usage = "member expire"
    doc = (
        "drop a group heartbeat: the member gets UNKNOWN_MEMBER_ID, the coordinator waits for the"
        " session timeout"
    )
    sides = (CLIENT,)
    whole = True
    text = "expire"
    _lost: Final = ErrorAction(UNKNOWN_MEMBER_ID, None)

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """`expire`."""
        if words != ["expire"]:
            raise cls.misused(words)
        return cls()

    def can_harm(self, key: int, version: int, side: int) -> bool:
        name = APIS[key].name
        heartbeat = name.endswith("Heartbeat") and name != "BrokerHeartbeat"
        return heartbeat and self._lost.can_harm(key, version, side)

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        return self._lost.act(frame)
