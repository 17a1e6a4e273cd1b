"""What the program says of a capture against what its clients say they did."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.interop.drivers import Story
from tests.interop.known import Row
from tests.interop.wire import Asked, asked

# APIs whose bodies stay bytes for now. Whoever adds a name here says why.
NOT_DECODED: frozenset[str] = frozenset()
# librdkafka sends three bytes behind the end of a Metadata request of version 10 and later.
SURPLUS = {("Metadata", 3)}
ANSWERED = {"answered"}
UNANSWERED = {"no-reply", "lost", "open"}

Object = dict[str, Any]


def kafkascope(*arguments: str | Path) -> list[Object]:
    """Lines of JSON that the command prints."""
    command = [sys.executable, "-m", "kafkascope.tui.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{arguments} ended with {done.returncode}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


@dataclass
class Recording:
    """A capture, what its clients did, and what the program reads from it."""

    capture: Path
    ports: frozenset[int]
    story: Story
    exchanges: list[Object] = field(default_factory=list)
    records: list[Object] = field(default_factory=list)

    def read(self) -> "Recording":
        """Run the program on the capture."""
        self.exchanges = kafkascope("ls", self.capture, "--json")
        self.records = kafkascope("records", self.capture, "--json")
        return self

    def states(self) -> Counter[str]:
        """How exchanges ended."""
        return Counter(e["state"] for e in self.exchanges)

    def undecoded(self) -> list[Object]:
        """Whatever was not decoded to the last byte, except what the list above allows."""
        return [
            {"number": e["number"], "api": e["api"], "version": e["api_version"], **u}
            for e in self.exchanges
            for u in e["undecoded"]
            if not (u["reason"] == "unknown-api" and e["api"] in NOT_DECODED)
            and not (u["reason"] == "surplus" and (e["api"], u["bytes"]) in SURPLUS)
        ]

    def unpaired(self) -> list[str]:
        """Where the program and the reader of `wire` count requests and answers differently."""
        ours: Counter[Asked] = Counter()
        odd = []
        for e in self.exchanges:
            if e["state"] not in ANSWERED | UNANSWERED:
                odd.append(f"{e['state']}: {e}")
            elif e["api_version"] is not None:
                ours[Asked(e["api_key"], e["api_version"], e["state"] in ANSWERED)] += 1
        theirs = asked(self.capture, self.ports)
        odd += [f"not listed: {n} x {a}" for a, n in (theirs - ours).items()]
        odd += [f"listed too often: {n} x {a}" for a, n in (ours - theirs).items()]
        return odd


def differences(recording: Recording) -> Iterator[str]:
    """Sentences about records that differ from what the clients told."""
    story = recording.story
    refused = {
        e["number"] for e in recording.exchanges if e["errors"] or e["state"] in {"lost", "open"}
    }
    rows = [
        r
        for r in recording.records
        if not r["control"]
        and not r["topic"].startswith("__")  # brokers write these
        and not (r["source"] == "produce" and r["exchange"] in refused)  # sent again later
    ]
    written = [r for r in rows if r["source"] == "produce"]
    yield from _missing("produced", story.produced, map(row, written))

    content = {(r.topic, r.partition, r.time_ms): r for r in story.produced}
    fetched: dict[tuple[str, int, int | None], Row] = {}
    for r in rows:
        if r["source"] != "fetch":
            continue
        seen = row(r)
        fetched[seen[:3]] = seen
        made = content.get((seen.topic, seen.partition, seen.time_ms))
        if made is None:
            yield f"fetched, but nobody wrote it: {seen}"
        elif made[4:] != seen[4:] or made.offset not in (None, seen.offset):
            yield f"fetched {seen}, written {made}"
    for told in story.consumed:
        if fetched.get(told[:3]) != told:
            yield f"a client read {told}, the program says {fetched.get(told[:3])}"

    for r in written:
        expected = story.codec_of.get(r["topic"])
        if expected != (r["codec"] or "none"):
            yield f"codec {r['codec']} on {r['topic']}, expected {expected}"


def assert_right(recording: Recording) -> None:
    """Every frame is decoded to the last byte, every request that was answered has its answer, and
    records are what the clients wrote and read."""
    assert recording.exchanges
    assert recording.undecoded() == []
    assert recording.unpaired() == []
    assert list(differences(recording)) == []


def row(record: Object) -> Row:
    """A line of `records --json` as the clients tell it."""
    return Row(
        record["topic"],
        record["partition"],
        record["offset"],
        round(datetime.fromisoformat(record["time"]).timestamp() * 1000),
        record["key"],
        record["value"],
        record["headers"],
    )


def _missing(what: str, expected: Iterable[Row], found: Iterable[Row]) -> Iterator[str]:
    expected_count = Counter(json.dumps(r, sort_keys=True) for r in expected)
    found_count = Counter(json.dumps(r, sort_keys=True) for r in found)
    for line in expected_count - found_count:
        yield f"{what}, but not listed: {line}"
    for line in found_count - expected_count:
        yield f"listed, but not {what}: {line}"
