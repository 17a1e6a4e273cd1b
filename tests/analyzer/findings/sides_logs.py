"""Both sides of the limits of what request logs of brokers tell."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.logged import LoggedConnections
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.findings import Findings
from kafkascope.analyzer.requestlog import model
from kafkascope.analyzer.requestlog.printing import line_of
from kafkascope.captures.formats.text import MARKER
from kafkascope.dissectors.registry import APIS, example, layout_of
from tests.analyzer.findings.judging import Side
from tests.kit.counting import counted
from tests.kit.wire import MS, START

PRODUCE, METADATA, HEARTBEAT, LIST_GROUPS, API_VERSIONS = 0, 3, 12, 16, 18
APIS_SHARED = (METADATA, HEARTBEAT, LIST_GROUPS)


def completed(key: int, connection: int, number: int, **times: int) -> model.Completed:
    """A completed request of version 3 with these times, the others 0."""
    bodies = []
    for side in ("Request", "Response"):
        name = f"{APIS[key].name}{side}"
        body: Any = example(name, 3)
        if name == "ProduceRequest":
            body["acks"] = -1
        bodies.append(model.LoggedBody(body, layout_of(name, 3), ""))
    stages = model.BrokerTimes(*(times.get(name, 0) for name in model.BrokerTimes._fields))
    return model.Completed(
        form="json",
        written_ns=START + number * MS,
        level="DEBUG",
        total_ns=sum(times.values()),
        times=stages,
        api_key=key,
        api_name=APIS[key].name,
        api_version=3,
        correlation_id=number,
        client_id="app",
        forwarded=False,
        deprecated=False,
        connection=model.LoggedConnection(
            ("10.0.0.1", 9092), ("10.0.0.9", 4000 + connection), str(connection)
        ),
        security_protocol="PLAINTEXT",
        principal="User:ANONYMOUS",
        listener="PLAINTEXT",
        software_name="",
        software_version="",
        request=bodies[0],
        response=bodies[1],
        record_sizes={},
        conversions_ns=0,
        temporary_bytes=0,
    )


def reported(entries: Iterable[model.Completed], rule: str) -> bool:
    context = Context()
    connections, pairs = LoggedConnections(context), []
    for number, each in enumerate(entries, 1):
        text = line_of(each)
        line = model.LogLine(number, 1, number, text[text.index(MARKER) :], "", "", "")
        exchange = connections.take(0, line, each).exchange()
        pairs.append((row_of(exchange, context.names), exchange))
    found = counted(Findings(only=[rule]), pairs).reported(context.names)
    return rule in {each.name for each in found}


def slow(
    key: int | None,
    stage: str,
    *,
    took: int = 10**10,
    count: int = 20,
    of: int = 20,
    spread: int = 3,
) -> list[model.Completed]:
    """`count` requests that took long in a stage, of so many; of `spread` APIs and connections,
    unless it is of one `key`."""
    return [
        completed(
            APIS_SHARED[number % min(spread, 3)] if key is None else key,
            number % spread,
            number,
            **{stage: took if number < count else 0},
        )
        for number in range(of)
    ]


def refused(count: int, others: int) -> list[model.Completed]:
    """Connections with ApiVersions alone, and others that go on."""
    lone = [completed(API_VERSIONS, number, 1) for number in range(count)]
    more = [
        completed(key, count + number, 1)
        for number in range(others)
        for key in (API_VERSIONS, METADATA)
    ]
    return lone + more


def looked_up(count: int) -> list[model.Completed]:
    """Connections with Metadata alone of a client that sends no ApiVersions, to a broker that
    offers the versions of 4.0 to another one."""
    lone = [completed(METADATA, number, 1) for number in range(count)]
    asking = completed(API_VERSIONS, 9, 1)._replace(client_id="other")
    body = asking.response.body
    assert body is not None
    body["api_keys"] = [{"api_key": 1, "min_version": 4, "max_version": 17}]
    return [*lone, asking]


STAGES: dict[str, tuple[int | None, str, str, int]] = {
    "handlers-busy": (None, "request_queue_ns", "stage.queue", 100 * MS),
    "network-threads-busy": (None, "response_queue_ns", "stage.queue", 100 * MS),
    "broker-local-slow": (METADATA, "local_ns", "stage.local", 500 * MS),
    "followers-slow": (PRODUCE, "remote_ns", "stage.remote", 500 * MS),
    "slow-reader": (METADATA, "send_ns", "stage.send", 500 * MS),
}
"""Rule -> API (None: several), stage, limit and its value."""


def _side(rule: str, make: Callable[[int], list[model.Completed]], calm: int, told: int) -> Side:
    return Side(lambda size: reported(make(size), rule), calm, told)


SIDES: dict[str, Side] = {}
for _rule, (_key, _stage, _limit, _value) in STAGES.items():
    _slow = partial(slow, _key, _stage)
    SIDES |= {
        f"{_rule} {_limit}": _side(_rule, lambda n, s=_slow: s(took=n), _value - 1, _value),
        f"{_rule} stage.count": _side(_rule, lambda n, s=_slow: s(count=n, of=n), 19, 20),
        f"{_rule} stage.share": _side(_rule, lambda n, s=_slow: s(count=n, of=300), 29, 30),
    }
    if _key is None:
        SIDES[f"{_rule} stage.spread"] = _side(_rule, lambda n, s=_slow: s(spread=n), 2, 3)
SIDES |= {
    "likely-refused refused.connections": _side("likely-refused", lambda n: refused(n, 0), 2, 3),
    "likely-refused refused.connections lookups": _side("likely-refused", looked_up, 2, 3),
    "likely-refused refused.share": _side("likely-refused", lambda n: refused(50, n), 51, 50),
}
