"""Transcripts of a connection: `>>` this happens, `<<` this must follow.

    assert (
        Playbook()
        >> FromClient(asked)
        << to_broker(asked)
        >> FromBroker(told)
        << to_client(told)
    )

Steps are carried out in the order in which they are written. What a step leads to must be named
before the next one, all of it and in order: a step without `<<` behind it leads to nothing. Pieces
for the same side that follow each other count as one.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias
from unittest.mock import ANY

from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.registry import APIS, read_request_header
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, Action, Ask, Send, Verdict, WakeUp
from tests.kit.proxy import Bench, Tape

SIDES = ("client", "broker")


class FromClient(NamedTuple):
    """The client sends bytes."""

    data: bytes


class FromBroker(NamedTuple):
    """The broker sends bytes."""

    data: bytes


class Passes(NamedTuple):
    """A side sends bytes, which the other gets as they are; the recording, where there is one, gets
    them, too."""

    side: int
    data: bytes
    comment: str = ""


class Ends(NamedTuple):
    """A side sends no more."""

    side: int


class TimePasses(NamedTuple):
    """The time of the last `WakeUp` is over."""


class Decided(NamedTuple):
    """The rule that took its time has decided."""

    verdict: Verdict | None


class Released(NamedTuple):
    """Somebody lets the held frame of a side go on."""

    side: int
    verdict: Verdict


class Closed(NamedTuple):
    """Both sockets are gone."""


Step: TypeAlias = FromClient | FromBroker | Ends | TimePasses | Decided | Released | Closed


class Recorded(NamedTuple):
    """The recording gets bytes of the client's leg."""

    side: int
    data: bytes
    comment: str = ""


class RecordedUpstream(NamedTuple):
    """The recording gets bytes of the broker's leg, where it differs."""

    side: int
    data: bytes
    comment: str = ""


Effect: TypeAlias = Action | Recorded | RecordedUpstream


def to_client(data: bytes) -> Send:
    """The client gets these bytes."""
    return Send(CLIENT, data)


def to_broker(data: bytes) -> Send:
    """The broker gets these bytes."""
    return Send(BROKER, data)


def wait(delay_ns: int) -> WakeUp:
    """The connection wants to be woken after a time."""
    return WakeUp(delay_ns, ANY)


def ask() -> Ask:
    """A rule takes its time."""
    return Ask(ANY, ANY)


class Playbook:
    """A connection with rules, held against a transcript; recorded on demand."""

    def __init__(self, *rules: Any, recording: bool = False) -> None:
        self.bench = Bench(*rules)
        self.tape = Tape(self.bench) if recording else None
        self._due: list[Effect] = []
        self._lines: list[str] = []
        self._wake: Any = None
        self._ask: Any = None

    def port(self, node_id: int) -> int:
        """Where the clients of a broker are told to connect to."""
        return self.bench.nodes.listeners[node_id].address.port

    def __rshift__(self, step: Step | Passes) -> Playbook:
        """Something happens."""
        if isinstance(step, Passes):
            side, data, comment = step
            book = (self >> (FromBroker if side else FromClient)(data)) << Send(1 - side, data)
            return book << Recorded(side, data, comment) if self.tape else book
        if self._due:
            raise self._failure("and nothing more")
        self._lines.append(f">> {_shown(step)}")
        actions = self._happen(step)
        for action in actions:
            if isinstance(action, WakeUp):
                self._wake = action.token
            elif isinstance(action, Ask):
                self._ask = action.token
        for each in (*actions, *self._recorded()):
            last = self._due[-1] if self._due else None
            if isinstance(each, Send) and isinstance(last, Send) and each.side == last.side:
                self._due[-1] = Send(each.side, bytes(last.data) + bytes(each.data))
            else:
                self._due.append(each)
        return self

    def _recorded(self) -> list[Effect]:
        """What was recorded since the last call."""
        if self.tape is None:
            return []
        events, self.tape.events = self.tape.events, []
        legs = {0: Recorded, 1: RecordedUpstream}
        return [legs[e.leg](e.side, e.data, e.comment) for e in events if e.leg in legs]

    def __lshift__(self, effect: Effect) -> Playbook:
        """Something must follow."""
        if not self._due or type(self._due[0]) is not type(effect) or self._due[0] != effect:
            raise self._failure(_shown(effect))
        self._lines.append(f"<< {_shown(self._due.pop(0))}")
        return self

    def __bool__(self) -> bool:
        if self._due:
            raise self._failure("nothing more")
        return True

    def _happen(self, step: Step) -> list[Action]:
        bench, relay = self.bench, self.bench.relay
        match step:
            case FromClient(data):
                return bench.feed(CLIENT, data)
            case FromBroker(data):
                return bench.feed(BROKER, data)
            case Ends(side):
                return relay.eof(side, bench.now_ns)
            case TimePasses():
                return relay.woken(self._wake, bench.now_ns)
            case Decided(verdict):
                return relay.awaited(self._ask, verdict, bench.now_ns)
            case Released(side, verdict):
                return bench.release(side, verdict)
            case Closed():
                relay.closed()
                return []

    def _failure(self, wanted: str) -> AssertionError:
        got = "".join(f"\n << {_shown(each)}" for each in self._due) or "\n << nothing more"
        return AssertionError(
            "\n".join(("the transcript so far:", *self._lines))
            + f"\nwanted:\n << {wanted}\ngot:{got}"
        )


def _shown(value: Step | Effect) -> str:
    match value:
        case FromClient(data):
            return f"client sends {_frames(CLIENT, data)}"
        case FromBroker(data):
            return f"broker sends {_frames(BROKER, data)}"
        case Send(side, data):
            return f"{SIDES[side]} gets {_frames(1 - side, bytes(data))}"
        case Recorded(side, data, comment) | RecordedUpstream(side, data, comment):
            leg = " upstream" if isinstance(value, RecordedUpstream) else ""
            said = f" ({comment})" if comment else ""
            return f"recorded{leg} from {SIDES[side]}: {_frames(side, data)}{said}"
        case _:
            return repr(value)


def _frames(side: int, data: bytes) -> str:
    """The frames in bytes of a side by API, version and correlation id; bytes that are none."""
    told, at = [], 0
    while at + 8 <= len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        if not at + 8 <= end <= len(data):
            break
        payload = data[at + 4 : end]
        name = f"response {int.from_bytes(payload[:4], 'big')}"
        if side == CLIENT:
            try:
                header = read_request_header(payload)
            except DissectError:
                break
            api = APIS.get(header.api_key)
            named = api.name if api is not None else f"API {header.api_key}"
            name = f"{named} v{header.api_version} {header.correlation_id}"
        told.append(f"{name} {payload.hex()}")
        at = end
    if at < len(data):
        told.append(f"{len(data) - at} bytes {data[at:].hex()}")
    return ", ".join(told)
