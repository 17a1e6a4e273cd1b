"""Kafka traffic in tests: `kafka_proxy`, `kafka_capture`, `kafka_replay_broker`.

All of it is done by `kafkascope` as a child process, from this environment or another one; here are
only pipes, lines of JSON and assertions. Every wait has a limit, every child ends with us.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Capture", "KafkascopeError", "Proxy", "ReplayBroker"]

START_S = 90.0
"""This and the others are for machines that are ten times as slow as ours."""
ANSWER_S = 60.0
REMARK_S = 15.0
READ_S = 300.0
END_S = 30.0
PROTOCOL = 3
"""Of the control channel; an older kafkascope expects nothing of records and findings."""
ABSENT = (
    "there is no kafkascope: install it, or say where it is (KAFKASCOPE in the environment, or "
    "--kafkascope=COMMAND)"
)
SEVERITIES = ("error", "warning", "note", "chat")
MOST_LISTED = 10_000
"""In a verdict."""
MOST_TOLD = 20
"""Findings of a failure."""
_FAILED = pytest.StashKey[bool]()
_CAPTURES = pytest.StashKey[list["Proxy"]]()


class KafkascopeError(Exception):
    """kafkascope is not installed, did not start, or refused a request."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """--kafkascope and --kafkascope-dir."""
    group = parser.getgroup("kafkascope")
    group.addoption(
        "--kafkascope",
        metavar="COMMAND",
        help="Command that runs kafkascope; write --kafkascope=COMMAND (default: from PATH)",
    )
    group.addoption(
        "--kafkascope-dir",
        metavar="DIR",
        help="Folder for captures of failed tests; write --kafkascope-dir=DIR",
    )


def _command(config: pytest.Config) -> list[str]:
    wished = config.getoption("--kafkascope") or os.environ.get("KAFKASCOPE")
    if wished:
        return [wished] if Path(wished).exists() else shlex.split(wished)
    beside = Path(sys.executable).with_name("kafkascope")
    found = str(beside) if beside.exists() else shutil.which("kafkascope")
    if found is None:
        raise KafkascopeError(ABSENT)
    return [found]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A test that failed keeps its captures; its report says where they are."""
    outcome: Any = yield
    report = outcome.get_result()
    if not report.failed or item.stash.get(_FAILED, False):
        return
    item.stash[_FAILED] = True
    kept = [str(_kept(item, proxy.path)) for proxy in item.stash.get(_CAPTURES, [])]
    if kept:
        report.sections.append(("kafkascope", "the traffic of this test: " + ", ".join(kept)))


def _kept(item: pytest.Item, path: Path) -> Path:
    """Where a capture is when the test has failed."""
    folder = item.config.getoption("--kafkascope-dir") or os.environ.get("KAFKASCOPE_DIR")
    if not folder:
        return path
    name = re.sub(r"[^\w.-]+", "_", item.nodeid)
    return Path(folder).absolute() / f"{name}-{path.name}"


# --- children


class _Child:
    """A kafkascope that is steered over its stdin and stdout (docs/control.md of kafkascope). It
    ends when its stdin does: with us, whatever ends us."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it, and wait until clients can connect."""
        self._stderr: deque[str] = deque(maxlen=200)
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._turn = threading.Lock()  # tests of asyncio ask in threads
        self._over = False
        try:
            self._process = subprocess.Popen(
                [*command, "--control", "-"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # ctrl+c is for pytest, which then ends us in order
            )
        except FileNotFoundError:
            raise KafkascopeError(f"{ABSENT}; {command[0]} was not found") from None
        except OSError as error:
            raise KafkascopeError(f"{command[0]}: {error.strerror or error}") from None
        self._readers = [
            threading.Thread(target=self._read, args=reading, daemon=True)
            for reading in (
                (self._process.stderr, lambda line: self._stderr.append(line.rstrip())),
                (self._process.stdout, self._answers.put),
            )
        ]
        for reader in self._readers:
            reader.start()
        try:
            status = self._answer({"do": "status"}, START_S)
        except KafkascopeError:
            self.stop()
            raise KafkascopeError(f"kafkascope did not start:\n{self.stderr}") from None
        if status["protocol"] < PROTOCOL:
            self.stop()
            raise KafkascopeError(
                f"this kafkascope speaks protocol {status['protocol']} of its control channel, and "
                f"{PROTOCOL} is needed: update kafkascope"
            )
        self.bootstrap = str(status["bootstrap"])

    @staticmethod
    def _read(pipe: Any, put: Callable[[str], None]) -> None:
        for line in pipe:
            put(line)
        put("")

    @property
    def stderr(self) -> str:
        """The last lines of its stderr."""
        return "\n".join(self._stderr).strip()

    def ask(self, do: str, **members: Any) -> dict[str, Any]:
        """The answer; `KafkascopeError` with its reason."""
        request = {"do": do, **{k: v for k, v in members.items() if v is not None}}
        answer = self._answer(request, ANSWER_S + float(members.get("within") or 0))
        if not answer.get("ok"):
            raise KafkascopeError(f"{do}: {answer.get('error', 'refused')}")
        return answer

    def _answer(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        with self._turn:
            if self._over:
                raise self._ended()
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(json.dumps(request) + "\n")
                self._process.stdin.flush()
                line = self._answers.get(timeout=seconds)
            except (OSError, ValueError):
                line = ""
            except queue.Empty:
                self._over = True  # a late answer would be taken for the next one
                raise KafkascopeError(f"{request['do']}: no answer after {seconds:g} s") from None
            if not line:
                self._over = True
                raise self._ended()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _ended(self) -> KafkascopeError:
        self._readers[0].join(END_S)
        return KafkascopeError(f"kafkascope has ended:\n{self.stderr}".rstrip(":\n"))

    def stop(self) -> None:
        """End it, in order if possible; returns when it is gone."""
        process = self._process
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        for how in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_S)
                break
            process.send_signal(how)
        process.wait()
        for reader in self._readers:
            reader.join(END_S)
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


# --- what tests hold


class Capture:
    """Traffic in a file, and what has to be true of it; `path` opens in Wireshark, too."""

    def __init__(self, command: Sequence[str], path: Path) -> None:
        self._command = list(command)
        self.path = path
        self._schemas: list[str] = []

    def use_schemas(
        self,
        *folders: str | os.PathLike[str],
        topics: Mapping[str, str | os.PathLike[str]] | None = None,
        registry: str | None = None,
    ) -> None:
        """Decode keys and values with these schemas: folders as for `--schemas`, files by topic as
        for `--schema` (`{"orders": "order.proto#shop.Order", "orders:key": "id.avsc"}`), a
        registry."""
        for folder in folders:
            self._schemas += ["--schemas", os.fspath(folder)]
        for topic, file in (topics or {}).items():
            self._schemas += ["--schema", f"{topic}={os.fspath(file)}"]
        if registry is not None:
            self._schemas += ["--registry", registry]

    def _flush(self) -> None:
        """What passed is in the file."""

    def _lines(self, *arguments: str) -> list[dict[str, Any]]:
        self._flush()
        if not self.path.exists():
            return []
        command = [*self._command, *arguments[:1], str(self.path), "--json", "-q", *arguments[1:]]
        command += self._schemas
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=READ_S)
        except subprocess.TimeoutExpired:
            raise KafkascopeError(f"{shlex.join(command)}: no end after {READ_S:.0f} s") from None
        if done.returncode == 2 or (done.returncode > 2 and not done.stdout):
            raise KafkascopeError(f"{shlex.join(command)}:\n{done.stderr.strip()}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def _seen(self, of: str, where: str) -> list[dict[str, Any]] | None:
        """Return records or findings of a proxy's own recording; None: read the file."""

    def exchanges(self, where: str = "") -> list[dict[str, Any]]:
        """Return requests with their responses, as `kafkascope ls --json` prints them; `where` is a
        display filter such as `api == Produce and error != 0`."""
        return self._lines("ls", *(("-Y", where) if where else ()))

    def records(self, where: str = "") -> list[dict[str, Any]]:
        """Return produced and fetched records, as `kafkascope records --json` prints them, with
        `value_decoded` where there is a schema. `where` is a display filter that each of them
        meets: `topic == orders and record.value.amount > 100`."""
        found = self._seen("records", where)
        return self._lines("records", *(("-Y", where) if where else ())) if found is None else found

    def assert_records(self, where: str = "", *, count: int | None = None) -> list[dict[str, Any]]:
        """There are such records (exactly `count`, which may be 0); gives them."""
        __tracebackhide__ = True
        found = self.records(where)
        if len(found) == count or (found and count is None):
            return found
        wanted = "no record" if not found else f"{len(found)} records, not {count},"
        with_what = f" with {where}" if where else ""
        seen = found if found or not where else self.records()
        counts = Counter(f"{each['topic']} ({each['source']})" for each in seen)
        told = [f"{count} of {name}" for name, count in sorted(counts.items())]
        told += _undecoded(seen)
        raise AssertionError(f"{wanted}{with_what}; there were {', '.join(told) or 'none at all'}")

    def findings(self, level: str = "chat") -> list[dict[str, Any]]:
        """What `kafkascope check` found, of that severity or worse."""
        wanted = _severities(level)
        told = self._seen("findings", "")
        if told is None:
            told = self._lines("check", "--fail-on", "never")
        return [each for each in told if each["severity"] in wanted]

    def assert_request(
        self,
        *,
        api: str | None = None,
        version: int | None = None,
        client: str | None = None,
        where: str = "",
        count: int | None = None,
    ) -> list[dict[str, Any]]:
        """Such a request was sent (exactly `count` times); gives the exchanges."""
        __tracebackhide__ = True
        wanted = [] if api is None else [f"api == {api}"]
        wanted += [] if version is None else [f"version == {version}"]
        wanted += [] if client is None else [f"client == {json.dumps(client)}"]
        if where:
            wanted.append(f"({where})" if wanted and " or " in where else where)
        verdict = self._verdict(" and ".join(wanted), count)
        if not verdict["met"]:
            raise AssertionError(verdict["text"])
        found: list[dict[str, Any]] = verdict["exchanges"]
        return found

    def _verdict(self, where: str, count: int | None) -> dict[str, Any]:
        """Whether so many requests match (None: some), with what was sent instead."""
        found = self.exchanges(where)
        if (count is None and found) or len(found) == count:
            return {"met": True, "exchanges": found}
        many = "no request" if not found else _times(len(found), "request")
        how = f"{many}, not {count}," if found else many
        seen = self.exchanges() if where else found
        counts = Counter(f"{each['api']} v{each['api_version']}" for each in seen)
        sent = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        with_what = f" with {where}" if where else ""
        return {"met": False, "text": f"{how}{with_what}; there were {sent or 'none at all'}"}

    def assert_no_errors(self, allow: Sequence[str] = ()) -> None:
        """No answer had an error, except those named in `allow`."""
        __tracebackhide__ = True
        bad = []
        for each in self.exchanges():
            rest = [error["name"] for error in each["errors"] if error["name"] not in allow]
            if rest:
                bad.append(f"{_line(each)}: {', '.join(sorted(set(rest)))}")
        if bad:
            raise AssertionError("responses with errors:\n" + "\n".join(bad[:20]))

    def assert_no_findings(self, level: str = "warning", allow: Sequence[str] = ()) -> None:
        """`kafkascope check` finds nothing that bad, except the rules named in `allow`."""
        __tracebackhide__ = True
        every = self.findings()
        wanted = _severities(level)
        bad = [e for e in every if e["severity"] in wanted and e["name"] not in allow]
        if bad:
            told = list(_folded(bad[:MOST_TOLD], every))
            count = _times(len(bad), "finding")
            raise AssertionError("\n".join([f"{count} of level {level} or worse:", *told]))

    def assert_versions(self, **versions: int | range | Sequence[int]) -> None:
        """Each named API was used, and only in these versions: Produce=range(9, 13), Fetch=12."""
        __tracebackhide__ = True
        used: dict[str, set[int]] = {}
        for each in self.exchanges():
            used.setdefault(each["api"], set()).add(each["api_version"])
        bad = []
        for api, allowed in versions.items():
            wanted = {allowed} if isinstance(allowed, int) else set(allowed)
            if not used.get(api):
                bad.append(f"{api} was not used")
            elif used[api] - wanted:
                bad.append(f"{api} was used in version {sorted(used[api] - wanted)}")
        if bad:
            raise AssertionError("; ".join(bad))

    def assert_versions_at_most(self, **versions: int) -> None:
        """The named APIs were used up to these versions, if at all: Fetch=12."""
        __tracebackhide__ = True
        for each in self.exchanges():
            if each["api_version"] > versions.get(each["api"], each["api_version"]):
                raise AssertionError(f"{_line(each)} is newer than v{versions[each['api']]}")


class Proxy(Capture):
    """A proxy before a broker. Clients connect to `bootstrap`; all they say is captured."""

    def __init__(
        self, command: Sequence[str], upstream: str, path: Path, arguments: Sequence[str]
    ) -> None:
        super().__init__(command, path)
        self._stopped = False
        self._child = _Child(
            [
                *(*command, "proxy", "--upstream", upstream, "--listen", "127.0.0.1:0"),
                *("--quiet", "--grace", "1s", "--overwrite", "-w", str(path), *arguments),
            ]
        )
        self.bootstrap = self._child.bootstrap

    def ask(self, do: str, **members: Any) -> dict[str, Any]:
        """Anything that docs/control.md of kafkascope knows."""
        if self._stopped:
            raise KafkascopeError(f"{do}: the proxy has been stopped")
        return self._child.ask(do, **members)

    def _flush(self) -> None:
        if not self._stopped:
            self.ask("flush")

    def _verdict(self, where: str, count: int | None) -> dict[str, Any]:
        # What a schema decodes, only commands know that are told of it.
        if self._stopped or self._schemas:
            return super()._verdict(where, count)
        return self.ask("expect", filter=where, count=count, limit=MOST_LISTED)

    def _seen(self, of: str, where: str) -> list[dict[str, Any]] | None:
        if self._stopped or self._schemas:
            return None
        told = self.ask("expect", of=of, filter=where, limit=MOST_LISTED)
        found: list[dict[str, Any]] = told[of]
        return found if len(found) == told["found"] else None

    def add_rule(self, rule: str, name: str | None = None) -> str:
        """A fault, as for `--fault`: `api == Fetch -> delay 200ms once`; gives its name."""
        told = self.ask("fault", rule=rule, name=name)["rule"]
        return str(told["name"])

    def remove_rule(self, name: str) -> None:
        """It fires no more."""
        self.ask("remove", name=name)

    def rules(self) -> list[dict[str, Any]]:
        """All rules, each with how often it `matched` and `fired`."""
        found: list[dict[str, Any]] = self.ask("rules")["rules"]
        return found

    def clear(self) -> None:
        """All rules are gone."""
        self.ask("clear")

    def hold(self, where: str) -> None:
        """Hold what matches the filter until it is released."""
        self.ask("hold", filter=where)

    def held(self, count: int = 1, timeout: float = 30.0) -> list[dict[str, Any]]:
        """What is held, oldest first, as soon as there are `count`."""
        end = time.monotonic() + timeout
        while True:
            found: list[dict[str, Any]] = self.ask("held")["held"]
            if len(found) >= count:
                return found
            if time.monotonic() > end:
                raise AssertionError(f"{len(found)} frames are held, not {count}")
            time.sleep(0.02)

    def release(self, number: int | str = "all") -> None:
        """Let held frames go on."""
        self.ask("release", number=number)

    def drop(self, number: int) -> None:
        """The held frame never arrives."""
        self.ask("drop", number=number)

    def stop(self) -> None:
        """End the proxy; the capture is complete then."""
        self._stopped = True
        self._child.stop()


class ReplayBroker:
    """A capture that answers as a broker does. Clients connect to `bootstrap`."""

    def __init__(self, command: Sequence[str], path: Path, arguments: Sequence[str]) -> None:
        listen = ("--listen", "127.0.0.1:0")
        self._child = _Child([*command, "serve", str(path), *listen, *arguments])
        self.bootstrap = self._child.bootstrap

    @property
    def stderr(self) -> str:
        """The last lines of its stderr: requests without an answer, and other remarks. A remark may
        come after the answer that it is about."""
        return self._child.stderr

    def assert_stderr(self, text: str, timeout: float = REMARK_S) -> None:
        """Assert that a text is in its stderr by now, or in the next seconds."""
        __tracebackhide__ = True
        end = time.monotonic() + timeout
        while text not in self.stderr:
            if time.monotonic() > end:
                raise AssertionError(f"{text!r} is not in its stderr:\n{self.stderr}")
            time.sleep(0.02)

    # Deprecated names.
    said, assert_said = stderr, assert_stderr

    def stop(self) -> None:
        """End it."""
        self._child.stop()


# --- fixtures


@pytest.fixture
def kafka_proxy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Proxy]]:
    """`kafka_proxy("broker:9092", faults=[...], hold=FILTER, schemas=DIR, arguments=[...])`: starts
    a proxy. Its capture is kept, and its path printed, when the test fails."""
    command = _command(request.config)
    running: list[Proxy] = request.node.stash.setdefault(_CAPTURES, [])
    with contextlib.ExitStack() as ends:

        def start(
            upstream: str,
            *,
            faults: Sequence[str] = (),
            hold: str | None = None,
            schemas: str | os.PathLike[str] | None = None,
            arguments: Sequence[str] = (),
        ) -> Proxy:
            path = tmp_path / f"kafka-{len(running) + 1}.pcapng"
            more = [part for rule in faults for part in ("--fault", rule)]
            more += ["--hold", hold] if hold else []
            running.append(Proxy(command, upstream, path, [*more, *arguments]))
            ends.callback(running[-1].stop)
            if schemas is not None:
                running[-1].use_schemas(schemas)
            return running[-1]

        yield start
    for proxy in running if request.node.stash.get(_FAILED, False) else ():
        target = _kept(request.node, proxy.path)
        if target != proxy.path and proxy.path.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(proxy.path, target)


@pytest.fixture
def kafka_capture(request: pytest.FixtureRequest, kafka_proxy: Callable[..., Proxy]) -> Proxy:
    """The traffic of this test: a proxy before the broker that your fixture `kafka_bootstrap`, or
    KAFKA_BOOTSTRAP in the environment, names."""
    try:
        upstream = str(request.getfixturevalue("kafka_bootstrap"))
    except pytest.FixtureLookupError:
        upstream = os.environ.get("KAFKA_BOOTSTRAP", "")
    if not upstream:
        raise KafkascopeError(
            "which broker? Define a fixture kafka_bootstrap, or set KAFKA_BOOTSTRAP to HOST:PORT"
        )
    return kafka_proxy(upstream)


@pytest.fixture
def kafka_replay_broker(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., ReplayBroker]]:
    """`kafka_replay_broker(path)` makes a capture answer as a broker."""
    command = _command(request.config)
    with contextlib.ExitStack() as ends:

        def start(path: str | os.PathLike[str], *arguments: str) -> ReplayBroker:
            broker = ReplayBroker(command, Path(path), arguments)
            ends.callback(broker.stop)
            return broker

        yield start


def _severities(level: str) -> tuple[str, ...]:
    if level not in SEVERITIES:
        raise ValueError(f"{level!r} is none of {', '.join(SEVERITIES)}")
    return SEVERITIES[: SEVERITIES.index(level) + 1]


def _folded(bad: Sequence[dict[str, Any]], every: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield causes, each with its consequences indented below it. A consequence whose cause is
    milder, or allowed, gets its own entry and names its cause."""
    place = {each["id"]: number for number, each in enumerate(every)}
    shown = {each["id"] for each in bad}

    def cause(of: dict[str, Any]) -> str:
        seen = [str(of["id"])]
        for one in seen:
            seen += [e for e in every[place[one]]["because"] if e in shown and e not in seen]
        # The worst and earliest stand first.
        heads = [one for one in seen if not shown.intersection(every[place[one]]["because"])]
        return min(heads or seen, key=place.__getitem__)

    below: dict[str, list[dict[str, Any]]] = {}
    for each in bad:
        head = cause(each)
        below.setdefault(head, [])
        if head != each["id"]:
            below[head].append(each)
    for head, consequences in below.items():
        yield from _finding_lines(every[place[head]])
        for one in every[place[head]]["because"]:
            if one in place:
                yield f"    because: {every[place[one]]['text']}"
        if consequences:
            yield "    consequences:"
        for each in consequences:
            yield from (f"        {line}" for line in _finding_lines(each))


def _finding_lines(finding: dict[str, Any]) -> Iterator[str]:
    yield f"{finding['severity']} {finding['name']}: {finding['text']}"
    if finding["filter"]:
        yield f"    ls -Y '{finding['filter']}'"


def _line(each: dict[str, Any]) -> str:
    return f"{each['api']} v{each['api_version']} of {each['client_id']} (number {each['number']})"


def _undecoded(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Why values could not be decoded, the first few."""
    for each in records:
        for side in ("key_error", "value_error"):
            if error := each.get(side):
                yield f"{side} {error['reason']} at offset {each['offset']} of {each['topic']}"
                return


def _times(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
