"""Recorded answers of brokers, made wrong: what a target of `replay` may say."""

import random
import struct
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.dissectors import layout, registry
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import Slot, StructWire, Wire
from kafkascope.dissectors.values import Uuid
from kafkascope.proxy.serve.logins import Accounts, Denied, Login
from tests.kit.brokers import blank
from tests.kit.samples import SAMPLES

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
            decoded = registry.decode_request(payload)
            changed_body = _struct(decoded.layout.body, decoded.body, dice)
            body = payload[: decoded.body_at] + registry.write_layout(decoded.layout, changed_body)
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
        """For `tests.kit.brokers.broker`."""
        try:
            head = registry.read_request_header(payload)
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
        if dice.random() < 0.01:
            return struct.pack(">i", dice.choice((-1, 2**31 - 1, 3))) + said[4:]
        answer = _lie(said[4:], *place, dice)
        return struct.pack(">i", len(answer)) + answer


TOKENS: Final = (
    *(b"", b",", b"=", b"\xff\0\xfe", b"e=other-error", b"v=", b"v=AAAA", b"r=,s=,i="),
    *(b"n,,n=u,r=x", b"r=x,s=AA==,i=4096", b"m=1,r=x,s=AA==,i=4096", b"v=" + b"A" * 100_000),
    b"\0" * 3000,
)
FIELDS: Final = {
    b"r": (b"", b"x", b"\xff", b"\xe2\x80\xae", b"="),
    b"s": (b"", b"A", b"====", b"\xc3\xbc", b"AA=A", b"A" * 100_000),
    b"i": (
        *(b"", b"0", b"-1", b"1", b"4095", b"1000001", b"9" * 5000),
        *(b"0x10", b"1_0", b"\xd9\xa4", b" 7"),
    ),
    b"v": (b"", b"AAAA", b"====", b"\xff", b"A" * 100_000),
    b"m": (b"", b"1"),
}


class Gatekeeper:
    """A broker that lets `u` in with the password `p`, and now and then lies while it does."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._login = Login(Accounts({"u": "p"}))
        self.lies = 0
        self.passed = 0

    def __call__(self, payload: bytes, port: int) -> bytes | None:
        """For `tests.kit.brokers.broker`."""
        try:
            decoded = registry.decode_request(payload)
        except DissectError:
            return b""
        head, dice = registry.read_request_header(payload), self._dice
        said = blank(payload, port)
        if said is None or head.api_key not in (17, 18, 36):
            return said
        lies = dice.random() < 0.4
        self.lies += lies
        body: dict[str, Any] = {}
        if head.api_key == 17:
            body = dict(self._login.handshake(1, decoded.body["mechanism"]))
        elif head.api_key == 36:
            try:
                token = self._login.token(decoded.body["auth_bytes"])
            except Denied as error:
                body = {"error_code": 58, "error_message": str(error), "auth_bytes": b""}
            else:
                self.passed += self._login.done
                spoilt = lies and dice.random() < 0.8
                body = {"auth_bytes": _spoilt(token, dice) if spoilt else token}
        answer = said[4:]
        if body:
            told = registry.decode_response(answer, head.api_key, head.api_version)
            answer = answer[: told.body_at] + registry.write_layout(
                told.layout, {**told.body, **body}
            )
        if lies and "auth_bytes" not in body:
            answer = _lie(answer, head.api_key, head.api_version, dice)
        return struct.pack(">i", len(answer)) + answer


def _spoilt(token: bytes, dice: random.Random) -> bytes:
    """Another token of SCRAM, or of PLAIN."""
    fields = token.split(b",")
    kind = dice.randrange(5)
    if kind == 0 or not token:
        return dice.choice(TOKENS)
    if kind == 1:
        return token[: dice.randrange(len(token))]
    at = dice.randrange(len(fields))
    name, _, value = fields[at].partition(b"=")
    if kind == 2:
        fields[at] = name + b"=" + dice.choice(FIELDS[name])
    elif kind == 3:
        fields[at] = name + b"=" + value + dice.choice(FIELDS[name])
    else:
        key = dice.choice(list(FIELDS))
        fields.insert(dice.randint(0, len(fields)), key + b"=" + dice.choice(FIELDS[key]))
    return b",".join(fields)


def _lie(payload: bytes, key: int, version: int, dice: random.Random) -> bytes:
    """The answer with other values, or with other bytes."""
    kind = dice.randrange(9)
    body = bytearray(payload)
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
    else:
        body = bytearray(changed(bytes(body), key, version, dice))
    return bytes(body)


def changed(payload: bytes, key: int, version: int, dice: random.Random) -> bytes:
    """An answer that is well formed and says something else; the same where it cannot be read."""
    try:
        decoded = registry.decode_response(payload, key, version)
        body = _struct(decoded.layout.body, decoded.body, dice)
        return payload[: decoded.body_at] + registry.write_layout(decoded.layout, body)
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
        case layout.ArrayWire():
            return _array(wire, value, dice, slot, keep=keep)
        case _ if keep:
            return value
        case layout.NumberWire():
            return _number(wire, dice)
        case layout.BoolWire():
            return not value
        case layout.UuidWire():
            return Uuid(dice.randbytes(16))
        case layout.StringWire():
            return None if wire.nullable and dice.random() < 0.3 else dice.choice(TEXTS)
        case layout.BytesWire():
            return None if wire.nullable and dice.random() < 0.3 else dice.randbytes(20)


def _array(
    wire: layout.ArrayWire, value: Any, dice: random.Random, slot: Slot, *, keep: bool
) -> Any:
    if not keep and dice.random() < 0.5:
        return None if wire.nullable and dice.random() < 0.5 else []
    made = [_value(wire.element, each, dice, slot) for each in value or ()]
    return made * 2 if not keep and dice.random() < 0.3 else made


def _number(wire: layout.NumberWire, dice: random.Random) -> Any:
    if wire.code == "d":
        return 0.5
    low, high = (
        (0, 256**wire.size - 1)
        if wire.code.isupper()
        else (-(256**wire.size // 2), 256**wire.size // 2 - 1)
    )
    return min(max(dice.choice(NUMBERS), low), high)
