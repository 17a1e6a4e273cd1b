"""The requests of the control channel and their responses (docs/control.md)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from kafkascope.proxy.answers import PROTOCOL
from kafkascope.proxy.rules.faults import Fault, parse_fault
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT
from kafkascope.release import release

if TYPE_CHECKING:
    from kafkascope.proxy.engine.handler import Handler
    from kafkascope.proxy.engine.server import KafkaProxy
    from kafkascope.proxy.relay.direction import Direction

HOLD: Final = "hold"
SIDES: Final = ("request", "response")


class Steering:
    """Responds to requests about one proxy at once."""

    def __init__(self, proxy: KafkaProxy, stop: Callable[[], None] | None = None) -> None:
        self.proxy = proxy
        self._stop = stop
        self._started_ns = time.time_ns()

    def do(self, request: dict[str, Any]) -> dict[str, Any]:
        """The response to a request; `ValueError`, `KeyError` and the like when it is refused."""
        proxy = self.proxy
        held = proxy.held
        match request.get("do"):
            case "status":
                return self.status()
            case "metrics":
                return self.metrics()
            case "connections":
                return {"connections": [_connection(h) for h in self._handlers()]}
            case "held":
                return {"held": held.list()}
            case "show":
                return {"body": held.body(_number(request))}
            case "release":
                if request["number"] == "all":
                    return {"released": held.release_all()}
                held.release(_number(request))
                return {"released": 1}
            case "drop":
                held.drop(_number(request))
                return {}
            case "edit":
                held.edit(_number(request), request["body"])
                return {}
            case "rules":
                return {"rules": self.rules()}
            case "fault":
                fault = parse_fault(
                    text_of(request, "rule"), text_of({"name": "", **request}, "name")
                )
                proxy.rules.add(fault)
                return {"rule": fault.to_json()}
            case "remove":
                return {"removed": self._remove(text_of(request, "name"))}
            case "clear":
                count = len(proxy.rules)
                proxy.rules.clear()
                return {"removed": count}
            case "hold":
                text = None if request["filter"] is None else text_of(request, "filter")
                return self._hold(text, request.get("on"))
            case "stop":
                if self._stop is None:
                    raise ValueError("this proxy cannot be stopped through its control socket")
                self._stop()
                return {}
            case other:
                raise ValueError(f"unknown command {other!r}")

    def status(self) -> dict[str, Any]:
        proxy = self.proxy
        recorder = proxy.recorder
        recording = None
        if recorder is not None and recorder.path is not None:
            file = recorder.sinks[0]
            recording = {
                "bytes": file.written,
                "dropped": file.dropped + recorder.dropped,
                "failed": file.failed or file.full,
            }
        return {
            "protocol": PROTOCOL,
            "pid": os.getpid(),
            "version": release(),
            "started_ns": self._started_ns,
            **proxy.status(),
            "upstreams": [str(each) for each in proxy.nodes.upstreams],
            "recording": recording,
            "notices": [text for _, text in proxy.hub.notices],
        }

    def metrics(self) -> dict[str, Any]:
        self.proxy.count_sinks()
        metrics = self.proxy.hub.metrics
        return {
            "metrics": metrics.snapshot(),
            "latency": metrics.latencies(),
            "at_ns": time.time_ns(),
        }

    def rules(self) -> list[dict[str, Any]]:
        blank = {"name": "", "rule": None, "side": "", "action": None, "matched": 0, "fired": 0}
        return [
            rule.to_json()
            if isinstance(rule, Fault)
            else {**blank, "name": rule.name, "side": SIDES[rule.side]}
            for rule in self.proxy.rules
        ]

    def state(self) -> dict[str, Any]:
        held = self.proxy.held.list(self.proxy.hub.limits.state_held)
        return {
            "event": "state",
            "status": self.status(),
            **self.metrics(),
            "rules": self.rules(),
            "held": held,
        }

    def _handlers(self) -> list[Handler]:
        relays = [(h.relay.context.number, h) for h in self.proxy.handlers if h.relay is not None]
        return [handler for _, handler in sorted(relays, key=itemgetter(0))]

    def _remove(self, name: str) -> int:
        rules = [rule for rule in self.proxy.rules if rule.name == name]
        for rule in rules:
            self.proxy.rules.remove(rule)
        return len(rules)

    def _hold(self, text: str | None, on: str | None) -> dict[str, Any]:
        if on not in (None, *SIDES):
            raise ValueError(f"`on` must be request or response, not {on!r}")
        rule = None if text is None else hold_rule(text, on)
        for side in SIDES:
            if on in (None, side):
                self._remove(f"{HOLD} {side}")
        if rule is not None:
            self.proxy.rules.add(rule)
        names = {f"{HOLD} {side}" for side in SIDES}
        return {"rules": [each for each in self.rules() if each["name"] in names]}


def hold_rule(text: str, on: str | None = None) -> Fault:
    """The rule that holds what matches: requests, unless the filter or `on` asks for responses."""
    rule = parse_fault(f"{text} -> {HOLD}" + (f" on {on}" if on else ""))
    rule.name = f"{HOLD} {SIDES[rule.side]}"
    return rule


def text_of(request: dict[str, Any], name: str) -> str:
    """A member that has to be text; `ValueError`, `KeyError`."""
    text = request[name]
    if not isinstance(text, str):
        raise ValueError(f"`{name}` must be a string")
    return text


def _number(request: dict[str, Any]) -> int:
    number = request["number"]
    if type(number) is not int:
        raise ValueError(f"`number` must be a number, not {number!r}")
    return number


def _connection(handler: Handler) -> dict[str, Any]:
    relay = handler.relay
    assert relay is not None
    return {
        "number": relay.context.number,
        "client": str(relay.context.client),
        "broker": str(relay.context.broker),
        "node": handler.route.node_id,
        "client_id": relay.context.client_id,
        "opened_ns": int(handler.client.timestamp_start * 1e9),
        "in_flight": len(relay.pairing),
        "unsent": [0 if s is None or s.lost else s.unsent for s in handler.streams],
        "stopped": [_why(relay.directions[side]) for side in (CLIENT, BROKER)],
        "held": [
            d.stop.held for d in relay.directions if d.stop is not None and d.stop.held is not None
        ],
    }


def _why(direction: Direction) -> str | None:
    stop = direction.stop
    if stop is None:
        return None
    if stop.held is not None:
        return "hold"
    return "black-hole" if stop.forever else "rule"
