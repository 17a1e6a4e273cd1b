"""What applications see when rules reach into fields and records: the table of docs/faults.md."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kafkascope.proxy.rules.faults import parse_fault
from tests.interop.changes import CASES, CLIENTS, COUNT, FAILS, Case, seen
from tests.interop.drivers import Driver, drive
from tests.interop.proxied import Proxied, SecuredCluster
from tests.interop.scenarios import make_topics

pytestmark = pytest.mark.interop


def observed(proxied: Proxied, driver: Driver, case: Case, topic: str) -> str:
    """Write records and read them back under a rule; return what came of it."""
    proxy = proxied.proxies["PLAINTEXT"]
    # The consumer of the case before may still ask: a client id of one's own.
    who = {"client": f"{driver.client.name}-{topic.rpartition('.')[2]}"}
    condition, _, action = case.rule.partition("->")
    terms = filter(None, (condition.strip(), f"client == {who['client']}"))
    fault = parse_fault(f"{' and '.join(terms)} ->{action}")
    proxy.rules.clear()
    proxy.rules.add(fault)
    about = who | {"topic": topic, "may_fail": True}
    told = wrote = driver.step("Produce", count=COUNT, **about)
    if "failed" not in wrote:
        group = f"{topic}.group"
        told = driver.step("Consume", count=1000, seconds=case.seconds, group=group, **about)
    proxy.rules.clear()
    if not fault.trigger.fired:
        return "it did not fire"
    if "failed" in told:
        return f"{FAILS}{told['failed']}"
    return seen(wrote["produced"], told["consumed"])


def as_said(said: str, found: str) -> bool:
    """Whether that is what the table says; of errors it has the name."""
    if said.startswith(FAILS):
        return found.startswith(FAILS) and said.removeprefix(FAILS) in found
    return said == found


PARAMETERS = [
    # Some for each client in CI, all with all in `make soak`.
    *(pytest.param(c, CASES[n :: 2 * len(CLIENTS)], id=f"{c}-some") for n, c in enumerate(CLIENTS)),
    *(pytest.param(c, CASES, id=f"{c}-all", marks=pytest.mark.soak) for c in CLIENTS),
]


@pytest.mark.parametrize(("client", "cases"), PARAMETERS)
def test_applications_see_what_the_table_says(
    clusters: Callable[[str], SecuredCluster],
    tmp_path: Path,
    client: str,
    cases: tuple[Case, ...],
    request: pytest.FixtureRequest,
) -> None:
    cluster = clusters("4.4.0")
    names = [f"change.{request.node.callspec.id}.{number}" for number in range(len(cases))]
    make_topics(cluster, *names, copies=3)
    wrong = []
    with (
        Proxied(cluster, tmp_path / "recorded", ("PLAINTEXT",)) as proxied,
        drive(client, tmp_path, proxied.bootstrap(), timeout="4000") as driver,
    ):
        for case, topic in zip(cases, names, strict=True):
            found = observed(proxied, driver, case, topic)
            if not as_said(case.of(client), found):
                wrong.append(f"{case.rule}: {case.of(client)!r} is said, but: {found}")
    assert wrong == []
