"""Where the time of each request went: network, broker, or client. Real clients and a real broker
at both ends of a network that is far, thin, or lossy, captured at three points of it.
"""

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.interop.compare import kafkascope
from tests.interop.latency_runs import RUNS, Bench, DistantCluster, Run
from tests.interop.latency_truth import Measured, measured
from tests.interop.needs import need, need_namespaces
from tests.interop.network import POINTS, Network, Recorded
from tests.interop.scenarios import make_topics

pytestmark = [pytest.mark.interop, pytest.mark.tshark]

NUMBERS: Final = (
    *("request_transfer_ms", "server_ms", "response_transfer_ms", "rtt_ms"),
    *("retransmissions", "zero_window_ms"),
)
UNRELATED: Final = {"no-api-versions", "tiny-batches", "eager-fetches", "latest-skips", "lag"}
"""Rules about other subjects, whose findings are true of some runs."""
LATENCY: Final = (
    r"\bslow|\bpaus|\bstall|round.?trip|sent again|retransmi|\blos[st]\b|network-|window|nagle|"
    r"transfer|throttl|behind|(does|did) not read"
)
FAR_MS: Final = 20
"""Round trip from which on a network is said to be far."""
BLAMES: Final = {
    "client": r"nagle|\bclient-\w|in pieces|\bclient[^.]{0,40}(not read|paused|stalled|slowly)",
    "broker": r"\bslow-answers|\bbroker-\w|\bbroker[^.]{0,40}(slow|paused|stalled|not read)",
    "network": r"\bnetwork-\w|sent again|retransmi|packet loss|round.?trip",
    "loss": r"\bnetwork-loss|sent again|retransmi|packet loss|packets? lost",
}
"""Side -> what blames it."""

AT_EACH_POINT = pytest.mark.parametrize("point", POINTS)


@dataclass
class Measurement:
    """A run that was made, and what tshark shows in its captures."""

    run: Run
    recorded: Recorded
    exchanges: dict[str, list[Measured]]

    def affected(self, point: str, markers: bool = True) -> list[Measured]:
        """Return the exchanges with a marker, or those of the same API without one."""
        return [
            exchange
            for exchange in self.exchanges[point]
            if exchange.api_key == self.run.api_key
            and markers is self.is_affected(exchange.request + exchange.response)
        ]

    def is_affected(self, frames: bytes) -> bool:
        return any(marker in frames for marker in self.run.markers or (b"",))

    def expected(self, point: str) -> dict[str, float]:
        """Return columns with their medians; `server_ms` is measured at the broker."""
        affected = self.affected(point)
        medians = {
            column: statistics.median(getattr(exchange, column) for exchange in affected)
            for column in NUMBERS
        }
        server = statistics.median(each.server_ms for each in self.affected("broker"))
        known = statistics.median(each.wait_ms - each.rtt_ms for each in affected)
        medians["server_ms"] = server
        # A queue or a lost response hides it from the other points.
        if abs(known - server) > tolerance(server):
            del medians["server_ms"]
        unknown = self.run.unknown.get(point, ())
        return {column: value for column, value in medians.items() if column not in unknown}

    def rows(self, point: str, markers: bool = True) -> list[dict[str, Any]]:
        """Return what the program lists of the affected exchanges, or of the others."""
        rows = rows_by_exchange(self.recorded.captures[point])
        affected = self.affected(point, markers)
        return [rows[exchange.port, exchange.correlation_id] for exchange in affected]


@pytest.fixture(scope="module")
def bench(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    need("tcpdump", "tshark")
    need_namespaces()
    with Network() as network:
        cluster = DistantCluster("4.4.0")
        try:
            with network.inside("broker"):
                cluster.__enter__()
            yield Bench(network, cluster, tmp_path_factory.mktemp("bench"))
        finally:
            cluster.stop()


@pytest.fixture(scope="module", params=RUNS)
def measurement(
    request: pytest.FixtureRequest, bench: Bench, tmp_path_factory: pytest.TempPathFactory
) -> Measurement:
    run = RUNS[request.param]
    folder = tmp_path_factory.mktemp("latency")
    # A number: findings have the names of topics, and that of a run says what is wrong.
    bench = bench._replace(topic=f"orders-{[*RUNS].index(request.param)}")
    with bench.network.inside("broker"):
        make_topics(bench.cluster, bench.topic)
    with bench.network.recording(folder, run.client_half, run.broker_half) as recorded:
        run.act(bench)
    truth = {point: measured(file, bench.port) for point, file in recorded.captures.items()}
    return Measurement(run, recorded, truth)


def test_each_run_has_what_was_injected(measurement: Measurement) -> None:
    """The harness itself: were it wrong, the tests below would prove nothing."""
    run = measurement.run
    paths = [path for half in (run.client_half, run.broker_half) for path in half]
    assert sorted((event.what, event.marker) for event in measurement.recorded.events) == sorted(
        [("dropped", marker) for path in paths for marker in path.drop]
        + [("doubled", marker) for path in paths for marker in path.double]
    )
    wrong = []
    for point in POINTS:
        affected = measurement.affected(point)
        assert len(affected) >= max(2, len(run.markers))
        for column, (least, most) in run.injected[point].items():
            value = statistics.median(getattr(exchange, column) for exchange in affected)
            if not least - 0.5 <= value <= most:  # A timer of select may end a little early.
                wrong.append(f"{point}: {column} is {value:.1f}, injected: {least} to {most}")
    assert wrong == []


@AT_EACH_POINT
def test_each_point_has_the_same_exchanges(measurement: Measurement, point: str) -> None:
    here, at_broker = (
        {(each.port, each.correlation_id, each.request, each.response) for each in exchanges}
        for exchanges in (measurement.exchanges[point], measurement.exchanges["broker"])
    )
    assert here == at_broker


@AT_EACH_POINT
def test_columns_are_what_tshark_measures(measurement: Measurement, point: str) -> None:
    rows = measurement.rows(point)
    wrong = [
        f"{column} is {value}, right is {right:.2f}"
        for column, right in measurement.expected(point).items()
        if not fits(column, value := median(rows, column), right)
    ]
    wrong += [
        f"{column} is {value}, right is at most {most}"
        for column, most in measurement.run.at_most.items()
        if (value := median(rows, column)) is None or value > most
    ]
    assert wrong == []


@AT_EACH_POINT
def test_rows_name_the_capture_point_and_the_side_that_stalled(
    measurement: Measurement, point: str
) -> None:
    rows = measurement.rows(point)
    assert statistics.mode(row["capture_point"] for row in rows) == point
    right = measurement.run.stalled_by.get(point, (None,))
    if "network" in right and not measurement.expected(point)["retransmissions"]:
        # Behind a loss, a capture without the retransmission shows a delay like any other.
        right = (*right, None, "broker")
    assert statistics.mode(row["stalled_by"] for row in rows) in right
    if others := measurement.rows(point, markers=False):
        assert statistics.mode(row["stalled_by"] for row in others) is None
        assert statistics.mode(row["retransmissions"] for row in others) == 0


@AT_EACH_POINT
def test_the_first_finding_about_latency_names_the_cause(
    measurement: Measurement, point: str
) -> None:
    cause, texts = measurement.run.cause, findings(measurement.recorded.captures[point])
    first = next((text for text in texts if re.search(LATENCY, text, re.IGNORECASE)), None)
    if cause is None:
        # Packets that arrive two times look like retransmissions.
        doubled = measurement.recorded.events and first and re.search("^network-loss", first)
        # A machine with much to do forwards late: what was near is far then, for other packets of
        # a handshake at each point.
        trips = {each.port: each.rtt_ms for each in measurement.exchanges["client"]}
        late = statistics.median(trips.values()) > FAR_MS / 2
        assert first is None or doubled or (late and first.startswith("network-far"))
    elif point in measurement.run.visible_at:
        assert first is not None
        assert re.search(cause, first, re.IGNORECASE)


@AT_EACH_POINT
def test_no_finding_blames_an_innocent_side(measurement: Measurement, point: str) -> None:
    texts = findings(measurement.recorded.captures[point])
    assert [
        f"{side}: {text}"
        for side in measurement.run.innocent
        for text in texts
        if re.search(BLAMES[side], text, re.IGNORECASE)
    ] == []


def median(rows: Sequence[Mapping[str, Any]], column: str) -> float | None:
    values = [row.get(column) for row in rows]
    numbers = [value for value in values if value is not None]
    return statistics.median(numbers) if len(numbers) == len(values) else None


def tolerance(value: float) -> float:
    return max(2.0, abs(value) / 10)


def fits(column: str, value: float | None, right: float) -> bool:
    if value is None:
        return False
    if column == "retransmissions":
        # A request sent again while its response is on its way may count for it or not, and one
        # exchange moves the median of an even number of them by a half.
        return min(right, 1) - 0.5 <= value <= right
    return abs(value - right) <= tolerance(right)


@cache
def rows_by_exchange(capture: Path) -> dict[tuple[int, int], dict[str, Any]]:
    return {
        (int(row["client_address"].rpartition(":")[2]), row["correlation_id"]): row
        for row in kafkascope("ls", capture, "--json")
    }


@cache
def findings(capture: Path) -> list[str]:
    """Return names and texts. Full stops in numbers are replaced: patterns end at sentences."""
    return [
        re.sub(r"(?<=\d)\.(?=\d)", ",", f"{finding['name']}: {finding['text']}")
        for finding in kafkascope("check", capture, "--json", "--fail-on", "never")
        if finding["severity"] != "chat"
        and finding["name"] not in UNRELATED
        and not finding["name"].startswith("capture-")
    ]
