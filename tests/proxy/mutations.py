"""Recorded answers of brokers, made wrong: what a target of `replay` may say."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from analyzer.offline import open_capture
from dissectors.errors import DissectError
from dissectors.layout import (
    ArrayWire,
    BoolWire,
    BytesWire,
    NumberWire,
    Slot,
    StringWire,
    StructWire,
    UuidWire,
    Wire,
)
from dissectors.registry import decode_request, decode_response, read_request_header, write_layout
from dissectors.values import Uuid
from tests.analyzer.broken import SAMPLES
from tests.proxy.dummy import blank

__all__ = ["Liar", "changed", "recorded", "requests", "wrong_request"]

TEXTS: Final = ("", "x", "\0", "nosuch..example", "y" * 300, "\udcff", "127.0.0.1", "*", "ü")
NUMBERS: Final = (-(2**31), -2, -1, 0, 1, 2, 3, 7, 14, 15, 16, 79, 65_536, 2**31 - 1)
STEADY: Final = ("ApiVersions", "Metadata", "FindCoordinator", "SaslHandshake", "SaslAuthenticate")
"""Without these nothing else is sent: they lie less often."""


@cache
def recorded(name: str) -> Mapping[tuple[int, int], tuple[bytes, ...]]:
    """(api key, version) -> payloads of the answers in a sample."""
    found: dict[tuple[int, int], list[bytes]] = {}
    with open_capture([SAMPLES / name]) as capture:
        for exchange in capture.exchanges():
            key, version, response = exchange.api_key, exchange.api_version, exchange.response
            if key is not None and version is not None and response is not None:
                found.setdefault((key, version), []).append(response.frame.payload)
    return {place: tuple(payloads) for place, payloads in found.items()}


@cache
def requests(name: str) -> tuple[bytes, ...]:
    """Payloads of the requests in a sample."""
    with open_capture([SAMPLES / name]) as capture:
        asked = [exchange.request for exchange in capture.exchanges()]
    return tuple(each.frame.payload for each in asked if each is not None and each.header)


def wrong_request(payload: bytes, dice: random.Random) -> bytes:
    """The request with other values, or with other bytes, and its size."""
    body = bytearray(payload)
    kind = dice.randrange(8)
    if kind == 0:
        body[dice.randrange(len(body))] ^= 1 << dice.randrange(8)
    elif kind == 1:
        del body[dice.randint(8, len(body)) :]
    elif kind == 2:
        struct.pack_into(">i", body, dice.randrange(4, len(body) - 3), dice.choice(NUMBERS))
    elif kind == 3:
        struct.pack_into(">h", body, 2, dice.randint(-1, 20))
    else:
        try:
            decoded = decode_request(payload)
            changed_body = _struct(decoded.layout.body, decoded.body, dice)
            body = payload[: decoded.body_at] + write_layout(decoded.layout, changed_body)
        except DissectError:
            pass
    return struct.pack(">i", len(body)) + bytes(body)


class Liar:
    """Answers as the sample's brokers did, or as a blank one, and now and then wrong."""

    def __init__(self, sample: str, seed: int) -> None:
        self._known = recorded(sample)
        self._random = random.Random(seed)
        self.lies = 0

    def __call__(self, payload: bytes, port: int) -> bytes | None:
        """For `tests.proxy.dummy.broker`."""
        try:
            head = read_request_header(payload)
        except DissectError:
            return b""
        dice = self._random
        place = (head.api_key, head.api_version)
        said = blank(payload, port)
        known = self._known.get(place)
        steady = head.api_key in (3, 10, 17, 18, 36)
        if known and not steady and dice.random() < 0.7:
            answer = payload[4:8] + dice.choice(known)[4:]
            said = struct.pack(">i", len(answer)) + answer
        if not said or dice.random() > (0.1 if steady else 0.6):
            return said
        self.lies += 1
        return self._lie(said, *place)

    def _lie(self, said: bytes, key: int, version: int) -> bytes:
        dice = self._random
        kind = dice.randrange(10)
        body = bytearray(said[4:])
        if kind == 0 and len(body) > 4:
            for _ in range(dice.randint(1, 8)):
                body[dice.randrange(4, len(body))] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del body[dice.randint(4, len(body)) :]
        elif kind == 2:
            body += dice.randbytes(dice.randint(1, 40))
        elif kind == 3 and len(body) > 8:
            at = dice.randrange(4, len(body) - 3)
            struct.pack_into(">i", body, at, dice.choice(NUMBERS))
        elif kind == 4 and dice.random() < 0.2:
            struct.pack_into(">i", body, 0, dice.choice(NUMBERS))
        elif kind == 5 and dice.random() < 0.1:
            return struct.pack(">i", dice.choice((-1, 2**31 - 1, 3))) + bytes(body)
        else:
            body = bytearray(changed(bytes(body), key, version, dice))
        return struct.pack(">i", len(body)) + bytes(body)


def changed(payload: bytes, key: int, version: int, dice: random.Random) -> bytes:
    """An answer that is well formed and says something else; the same where it cannot be read."""
    try:
        decoded = decode_response(payload, key, version)
        body = _struct(decoded.layout.body, decoded.body, dice)
        return payload[: decoded.body_at] + write_layout(decoded.layout, body)
    except DissectError:
        return payload


def _struct(wire: StructWire, value: Mapping[str, Any], dice: random.Random) -> dict[str, Any]:
    out = dict(value)
    for slot in (*wire.slots, *wire.tags):
        out[slot.name] = _value(slot.wire, value[slot.name], dice, slot)
    return out


def _value(wire: Wire, value: Any, dice: random.Random, slot: Slot) -> Any:
    keep = dice.random() < 0.8
    match wire:
        case StructWire():
            return None if value is None else _struct(wire, value, dice)
        case ArrayWire():
            return _array(wire, value, dice, slot, keep=keep)
        case _ if keep:
            return value
        case NumberWire():
            return _number(wire, dice)
        case BoolWire():
            return not value
        case UuidWire():
            return Uuid(dice.randbytes(16))
        case StringWire():
            return None if wire.nullable and dice.random() < 0.3 else dice.choice(TEXTS)
        case BytesWire():
            return None if wire.nullable and dice.random() < 0.3 else dice.randbytes(20)


def _array(wire: ArrayWire, value: Any, dice: random.Random, slot: Slot, *, keep: bool) -> Any:
    if not keep and dice.random() < 0.5:
        return None if wire.nullable and dice.random() < 0.5 else []
    made = [_value(wire.element, each, dice, slot) for each in value or ()]
    return made * 2 if not keep and dice.random() < 0.3 else made


def _number(wire: NumberWire, dice: random.Random) -> Any:
    if wire.code == "d":
        return 0.5
    low, high = (
        (0, 256**wire.size - 1)
        if wire.code.isupper()
        else (
            -(256**wire.size // 2),
            256**wire.size // 2 - 1,
        )
    )
    return min(max(dice.choice(NUMBERS), low), high)
