"""What applications see of rules that reach into fields, records, versions and memberships.

`CASES` says it: `test_proxy_changes.py` holds that to real clients, and docs/faults.md shows it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

CLIENTS = {"java-4.4.0": "Java", "librdkafka": "librdkafka", "kafka-python": "kafka-python"}
COUNT = 20
"""Records that are written, ten to each of two partitions."""
DAY_MS = 86_400_000
FAILS = "fails with "
NOTHING = "nothing"
LOST, TWICE = "records are lost", "records are read twice"


class Case(NamedTuple):
    """A rule, and what comes of it."""

    rule: str
    sees: str
    """What applications see, as `seen` says it."""
    but: Mapping[str, str] = MappingProxyType({})
    """What those of a client see, where it is something else."""
    seconds: int = 5
    """For the consumer: it reads all that comes."""

    def of(self, client: str) -> str:
        """What the applications of one client see."""
        return self.but.get(client, self.sees)


CASES = (
    Case("api == Produce -> records lose 1", f"2 {LOST}"),
    Case("api == Produce -> records duplicate", f"20 {TWICE}"),
    Case("api == Produce -> records reorder", "another order"),
    Case(
        "api == Produce -> records corrupt crc once",
        NOTHING,
        {"kafka-python": f"{FAILS}CorruptRecordError"},
    ),
    Case("api == Produce -> records corrupt value", "other values"),
    Case("""api == Produce -> records set value '{"a":1}'""", "other values"),
    Case("api == Produce -> records set key k", "other keys"),
    Case("api == Produce -> records set timestamp -1d", "times of the day before"),
    Case("api == Produce -> records set header trace=x", "other headers"),
    Case("api == Fetch -> records lose 1", f"2 {LOST}"),
    Case("api == Fetch -> records duplicate", f"20 {TWICE}", {"java-4.4.0": NOTHING}),
    Case("api == Fetch -> records reorder", "another order"),
    Case(
        "api == Fetch and records > 0 -> records corrupt crc once",
        NOTHING,
        {
            "java-4.4.0": f"{FAILS}KafkaException",
            "kafka-python": f"{FAILS}CorruptRecordError",
        },
    ),
    Case("api == Fetch -> records corrupt value", "other values"),
    Case("""api == Fetch -> records set value '{"a":1}'""", "other values"),
    Case("api == Fetch -> records set timestamp -1d", "times of the day before"),
    Case("api == Fetch -> records set header trace=x", "other headers"),
    Case("api == Fetch -> set request.max_wait_ms = 1", NOTHING),
    Case("api == Fetch -> set response.responses[*].partitions[*].high_watermark += 1000", NOTHING),
    Case(
        "api == Produce -> set response.responses[*].partition_responses[*].base_offset += 100",
        "the producer gets other offsets",
    ),
    Case(
        "api == Produce -> "
        "set response.responses[*].partition_responses[index == 1].error_code = 6 once",
        f"10 {TWICE}",
    ),
    Case("api == Metadata -> set response.topics[*].partitions[*].leader_id = -1 first 2", NOTHING),
    Case("api == OffsetFetch -> set response.groups[0].error_code = 14 once", NOTHING),
    Case("api == ApiVersions -> versions Fetch <= 11, Produce 3-8", NOTHING),
    Case(
        "api == ApiVersions -> versions Fetch <= 3",
        f"20 {LOST}",
        {"librdkafka": f"{FAILS}INVALID_RECORD"},
    ),
    Case(
        "api == ApiVersions -> versions Produce <= 2",
        f"{FAILS}KafkaTimeoutError",
        {
            "java-4.4.0": f"{FAILS}UnsupportedVersionException",
            "librdkafka": f"{FAILS}20 not delivered",
        },
    ),
    Case("-> member expire nth 8", f"20 {TWICE}", seconds=25),
)


def seen(produced: Sequence[Any], consumed: Sequence[Any]) -> str:
    """What an application sees, in words. `produced` and `consumed`: rows as drivers tell them."""
    by_time = {(row[1], row[3]): row for row in produced}
    read = Counter((row[1], row[3]) for row in consumed)
    if Counter((row[1], row[3] - DAY_MS) for row in produced) == read:
        return "times of the day before"
    words = []
    if lost := len(by_time.keys() - read.keys()):
        words.append(f"{lost} {LOST}")
    if twice := sum(count > 1 for count in read.values()):
        words.append(f"{twice} {TWICE}")
    known = [(row, by_time[row[1], row[3]]) for row in consumed if (row[1], row[3]) in by_time]
    for place, name in ((4, "keys"), (5, "values"), (6, "headers")):
        if any(row[place] != written[place] for row, written in known):
            words.append(f"other {name}")
    times = [[row[3] for row in consumed if row[1] == partition] for partition in (0, 1)]
    if not twice and any(each != sorted(each) for each in times):
        words.append("another order")
    if not words and any(written[2] not in (None, row[2]) for row, written in known):
        words.append("the producer gets other offsets")
    if extra := len(read.keys() - by_time.keys()):
        words.append(f"{extra} more records")
    return ", ".join(words) or NOTHING


def table() -> str:
    """The table of docs/faults.md."""
    lines = ["| rule | applications see | but |", "| --- | --- | --- |"]
    for case in CASES:
        but = "; ".join(f"{CLIENTS[client]}: {_shown(text)}" for client, text in case.but.items())
        lines.append(f"| `{case.rule}` | {_shown(case.sees)} | {but} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def _shown(text: str) -> str:
    return text.replace("fails with 20 not delivered", "no record is delivered")
