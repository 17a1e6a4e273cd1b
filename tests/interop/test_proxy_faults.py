"""Each fault against each client: it does what its documentation says, and the capture shows it.

docs/faults.md tells users what is asserted here. Times are short (2 s where clients wait for an
answer), so that a fault costs seconds.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from kafkascope.proxy.rules.faults import Fault, parse_fault
from tests.interop.drivers import Driver, Story, drive
from tests.interop.proxied import Proxied, SecuredCluster, checked
from tests.interop.scenarios import make_topics

pytestmark = pytest.mark.interop

CLIENTS = ("java-4.4.0", "librdkafka", "kafka-python", "aiokafka", "franz-go", "kafkajs")
Object = dict[str, Any]
COUNT = 20
HELD_S = 0.5


LOST = ("drop", "reset", "close", "half-close", "truncate", "black-hole")
SLOW = ("delay", "throttle", "hold")


@dataclass(frozen=True)
class Case:
    """A fault, what the capture must show of it, and which clients give up."""

    rule: str
    fails: dict[str, str] = field(default_factory=dict)
    """What a client's error says, by client; the others come through. `*`: of all clients."""
    metadata: bool = False
    """The client asks for metadata before it goes on, all but kafka-python at a Fetch: it asks
    when it has time."""
    shown: str | None = None
    """See `shows`, where the action does not tell."""
    final: bool = False
    """No client makes the same request again."""
    may_fail: dict[str, str] = field(default_factory=dict)
    """As `fails`, where it depends on what else is in flight."""
    unheard: str = ""
    """A client that does not look at the error, and so does not try again."""

    @property
    def api(self) -> str:
        return self.rule.split()[2]

    @property
    def shows(self) -> str:
        """The faulty exchange: `error NAME`, `lost` (no answer), `slow` (300 ms), or nothing."""
        action, *words = self.rule.partition("-> ")[2].split()
        if self.shown is not None or action in LOST or action in SLOW:
            return self.shown if self.shown is not None else "lost" if action in LOST else "slow"
        return f"error {words[0]}"

    @property
    def again(self) -> bool:
        """Whether the same request is made again, and answered."""
        return not self.final and self.shows != "slow"

    def error(self, client: str) -> str | None:
        return self.fails.get(client, self.fails.get("*"))


LATE = {"aiokafka": "RequestTimedOut"}
CORRUPT = {"kafka-python": "CorruptRecord", "aiokafka": "CorruptRecord"}
UNKNOWN = {
    "kafka-python": "UnknownError",
    "franz-go": "UNKNOWN_SERVER_ERROR",
    "kafkajs": "unexpected error",
}
ILLEGAL = dict.fromkeys(("java-4.4.0", "kafka-python", "aiokafka"), "CommitFailed")
ILLEGAL |= dict.fromkeys(("librdkafka", "franz-go"), "ILLEGAL_GENERATION")
CASES = (
    Case("api == Produce -> error NOT_LEADER_OR_FOLLOWER first 2", metadata=True),
    Case("api == Produce -> error TOPIC_AUTHORIZATION_FAILED once", {"*": "authoriz"}, final=True),
    Case("api == Produce -> stamp REQUEST_TIMED_OUT once"),
    Case("api == Produce -> delay 300ms once"),
    Case("api == Produce -> throttle 2KB/s once"),
    Case("api == Produce -> drop once", LATE),
    Case("api == Produce -> drop on request once", LATE),
    Case("api == Produce -> reset once"),
    Case("api == Produce -> close once"),
    Case("api == Produce -> half-close once"),
    Case("api == Produce -> truncate 20 once"),
    Case(
        "api == Produce -> corrupt-crc on request once",
        CORRUPT | {"franz-go": "CORRUPT_MESSAGE"},
        shown="error CORRUPT_MESSAGE",
    ),
    # kafkajs stays on the connection that timed out.
    Case("api == Produce -> black-hole once", LATE | {"kafkajs": "timed out"}),
    Case("api == Produce -> hold once"),
    Case("api == Fetch -> error NOT_LEADER_OR_FOLLOWER first 2", metadata=True),
    Case("api == Fetch -> error UNKNOWN_SERVER_ERROR once", UNKNOWN),
    Case("api == Fetch -> delay 300ms on response once"),
    Case("api == Fetch -> throttle 5KB/s on response", shown=""),
    Case(
        "api == Fetch and records > 0 -> drop once",
        # The next answer on the connection is for another request than the oldest in flight.
        may_fail={"java-4.4.0": "CorrelationIdMismatch"},
    ),
    Case("api == Fetch and records > 0 -> truncate 100 once"),
    Case(
        "api == Fetch and records > 0 -> corrupt-crc once",
        CORRUPT | {"java-4.4.0": "Received exception when fetching", "franz-go": "crc"},
        shown="",
    ),
    Case("api == Fetch -> black-hole once"),
    Case("api == Metadata -> stamp LEADER_NOT_AVAILABLE at topic once"),
    Case("api == Metadata -> stale-metadata", shown=""),
    Case("api == FindCoordinator -> error COORDINATOR_NOT_AVAILABLE first 2"),
    Case("api == JoinGroup -> half-close once", {"franz-go": "closed the connection"}),
    Case("api == SyncGroup -> stamp REBALANCE_IN_PROGRESS once"),
    # aiokafka knows errors of partitions only, and starts without offsets.
    Case("api == OffsetFetch -> error COORDINATOR_LOAD_IN_PROGRESS once", unheard="aiokafka"),
    Case("api == OffsetCommit -> stamp ILLEGAL_GENERATION once", ILLEGAL, final=True),
)


@dataclass
class Trial:
    """A fault as one client met it."""

    case: Case
    fault: Fault
    began_ns: int
    ended_ns: int = 0
    failure: str = ""
    read: int = 0


class Bench:
    """Carries out cases with one client."""

    def __init__(self, proxied: Proxied, driver: Driver) -> None:
        self.proxied = proxied
        self.driver = driver
        self.proxy = proxied.proxies["PLAINTEXT"]

    def release_held(self) -> None:
        """Let go what is held, after a while; in the proxy's loop, when something is."""
        if len(self.proxy.held):
            self.proxied.loop.call_later(HELD_S, self.proxy.held.release_all)

    def trial(self, case: Case, topic: str) -> Trial:
        """Write records and read them back under a fault."""
        # The consumer of the case before may still wait for an answer: a client id of one's own.
        who = {"client": f"{self.driver.client.name}-{topic.rpartition('.')[2]}"}
        fault = parse_fault(case.rule.replace(" ->", f" and client == {who['client']} ->", 1))
        self.proxy.rules.clear()
        self.proxy.rules.add(fault)
        trial = Trial(case, fault, time.time_ns())
        told = self.driver.step("Produce", topic=topic, count=COUNT, may_fail=True, **who)
        trial.failure = told.get("failed", "")
        if not trial.failure:
            step: Object = {"topic": topic, "count": COUNT, "group": f"{topic}.group", **who}
            told = self.driver.step("Consume", may_fail=True, **step)
            if not told.get("failed") and len(_places(told)) < COUNT:
                # A partition that was sent again is there twice: with half as many more, all that
                # there is was seen.
                step |= {"count": COUNT + COUNT // 2, "group": f"{topic}.all"}
                told = self.driver.step("Consume", may_fail=True, **step)
            trial.failure = told.get("failed", "")
            trial.read = len(_places(told))
        trial.ended_ns = time.time_ns()
        return trial


def complaints(trial: Trial, client: str, exchanges: list[Object]) -> Iterator[str]:
    """What is not as it should be."""
    case = trial.case
    wanted = case.error(client)
    if not trial.fault.trigger.fired:
        yield "it did not fire"
        return
    maybe = case.may_fail.get(client)
    if maybe is not None and maybe in trial.failure:
        return
    if wanted is None and (trial.failure or trial.read != COUNT):
        yield f"{trial.read} of {COUNT} records were read: {trial.failure}"
    if wanted is not None and wanted.lower() not in trial.failure.lower():
        yield f"it should fail with {wanted!r}: {trial.failure!r}, {trial.read} records"
    if not case.shows:
        return
    seen = sorted(
        (e for e in exchanges if trial.began_ns <= _time_ns(e) <= trial.ended_ns), key=_time_ns
    )
    hits = [at for at, e in enumerate(seen) if e["api"] == case.api and _shows(case.shows, e)]
    if not hits:
        states = [
            (e["state"], [x["name"] for x in e["errors"]]) for e in seen if e["api"] == case.api
        ]
        yield f"the capture does not show it: {states}"
        return
    after = seen[hits[-1] + 1 :]
    again = case.again and client != case.unheard
    if again and wanted is None and not any(_well(case.api, e) for e in after):
        yield f"no {case.api} was answered afterwards"
    lazy = client == "kafka-python" and case.api == "Fetch"
    if case.metadata and not lazy and not any(e["api"] == "Metadata" for e in seen[hits[0] :]):
        yield "it did not ask for metadata"


def _places(told: Object) -> set[tuple[str, ...]]:
    """Partition and time of what was read: each record has its own."""
    return {(str(row[1]), str(row[3])) for row in told.get("consumed", ())}


def _well(api: str, e: Object) -> bool:
    return e["api"] == api and e["state"] == "answered"


def _shows(what: str, e: Object) -> bool:
    if what == "lost":
        return bool(e["state"] in {"lost", "open"})
    if what == "slow":
        return e["latency_ns"] is not None and bool(e["latency_ns"] >= 250_000_000)
    return what.removeprefix("error ") in {error["name"] for error in e["errors"]}


def _time_ns(e: Object) -> int:
    seconds, _, rest = e["time"].partition(".")
    whole = datetime.fromisoformat(f"{seconds}+00:00").timestamp()
    return int(whole) * 10**9 + int(rest.rstrip("Z").ljust(9, "0"))


PARAMETERS = [
    # One client each in CI, all with all in `make soak`.
    *(pytest.param(c, CASES[n :: len(CLIENTS)], id=f"{c}-some") for n, c in enumerate(CLIENTS)),
    *(pytest.param(c, CASES, id=f"{c}-all", marks=pytest.mark.soak) for c in CLIENTS),
]


@pytest.mark.parametrize(("client", "cases"), PARAMETERS)
def test_clients_meet_faults_as_they_say(
    clusters: Callable[[str], SecuredCluster],
    tmp_path: Path,
    client: str,
    cases: tuple[Case, ...],
    request: pytest.FixtureRequest,
) -> None:
    cluster = clusters("4.4.0")
    prefix = request.node.callspec.id
    names = [f"fault.{prefix}.{number}" for number in range(len(cases))]
    make_topics(cluster, *names, copies=3)
    with (
        Proxied(cluster, tmp_path / "recorded", ("PLAINTEXT",)) as proxied,
        drive(client, tmp_path, proxied.bootstrap(), timeout="2000") as driver,
    ):
        bench = Bench(proxied, driver)
        bench.proxy.hub.watchers.add(bench.release_held)
        trials = [bench.trial(*pair) for pair in zip(cases, names, strict=True)]
        bench.proxy.rules.clear()
    recording = checked(proxied, Story())
    found = [
        f"{trial.case.rule}: {complaint}"
        for trial in trials
        for complaint in complaints(trial, client, recording.exchanges)
    ]
    assert found == []
    written = b"".join(path.read_bytes() for path in proxied.folder.iterdir())
    silent = [
        str(trial.fault)
        for trial in trials
        if f"fault: {trial.fault.action}".encode() not in written
    ]
    assert silent == []
