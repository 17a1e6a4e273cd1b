"""Real servers and clients of ZooKeeper: what clients did is what rows say, in both directions to
the last byte; and our records against ZooKeeper's own classes."""

import base64
import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.security import make_digest_acl

import kafkascope as ks
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.reader import reader
from kafkascope.dissectors.codec.writer import writer
from kafkascope.dissectors.layout import (
    ArrayWire,
    BoolWire,
    BytesWire,
    NumberWire,
    StringWire,
    StructWire,
    Wire,
)
from kafkascope.dissectors.messages import DATA
from kafkascope.dissectors.reference.zookeeper import ZOOKEEPER
from kafkascope.dissectors.zookeeper import frames
from kafkascope.dissectors.zookeeper.types import BASE, BY_NAME, TYPES, error_name
from tests.interop.asked import Asked
from tests.interop.keepers import Keeper
from tests.interop.maven import KEEPERS, compiled, jars
from tests.interop.needs import need
from tests.interop.sniff import sniff
from tests.strategies import bodies

pytestmark = pytest.mark.interop

NEWEST = "3.9.3"
RELEASES = tuple(KEEPERS)
SINCE_36 = frozenset(
    {"create2", "createContainer", "createTTL", "addWatch", "getEphemerals", "checkWatches"}
    | {"getAllChildrenNumber", "multiRead", "removeWatches", "deleteContainer"}
)
SINCE_39 = frozenset({"whoAmI", "reconfig", "setWatches2", "check"})
"""Asked there alone: others have no such type, are not started anew, or leave it unanswered."""


class Told(NamedTuple):
    """A request as its client tells it."""

    api: str
    path: str | None
    error: str | None


class Seen(NamedTuple):
    """What clients of a server say, by session, and the rows of its capture."""

    release: str
    told: dict[str, list[Told]]
    rows: list[Row]
    exchanges: list[ks.Exchange]


@pytest.fixture(scope="module", params=RELEASES)
def seen(
    request: pytest.FixtureRequest, java: None, tmp_path_factory: pytest.TempPathFactory
) -> Seen:
    need("tcpdump")
    path = tmp_path_factory.mktemp("zookeeper") / "all.pcap"
    told: dict[str, list[Told]] = {}
    with Keeper(request.param) as keeper, sniff(path, [keeper.port]):
        asked_by_java(keeper, told)
        asked_by_kazoo(keeper.port, told)
        asked_by_us(keeper, told)
    with ks.open(path) as capture:
        exchanges = list(capture)
    return Seen(request.param, told, [each.row for each in exchanges], exchanges)


# --- clients


def asked_by_java(keeper: Keeper, told: dict[str, list[Told]]) -> None:
    """Let the Java client ask; what it says, by session."""
    classes = compiled(jars(f"zookeeper-{NEWEST}", KEEPERS[NEWEST]), ["Keep"])
    command = [
        *("java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        f"-Djava.security.auth.login.config={keeper.jaas}",
        *("-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", classes.path),
        *("Keep", f"127.0.0.1:{keeper.port}", keeper.version[:3].replace(".", "")),
        *([keeper.members] if keeper.members else ()),
    ]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(errors := (keeper.home / "java").open("w+b")),
    )
    with errors, process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == b"waiting":
                keeper.stop()
                keeper.start()
                process.stdin.write(b"\n")
                process.stdin.flush()
                continue
            said = json.loads(line)
            told.setdefault(said["session"], []).append(
                Told(said["api"], said["path"], said["error"])
            )
        code = process.wait(60)
        errors.seek(0)
        assert code == 0, errors.read()[-3000:]


def asked_by_kazoo(port: int, told: dict[str, list[Told]]) -> None:
    """Let kazoo ask; what it did and got, by session."""
    client = KazooClient(f"127.0.0.1:{port}", timeout=20)
    client.start()
    said = [Told("connect", None, None)]
    told[f"{client.client_id[0]:#x}"] = said

    def ask(api: str, path: str | None, call: Callable[[], Any]) -> Any:
        error = answer = None
        try:
            answer = call()
        except KazooException as failed:
            error = error_name(failed.code)
        said.append(Told(api, path, error))
        return answer

    data = bytes(range(256))
    acl = [make_digest_acl("bob", "bob-secret", all=True)]
    ask("create", "/kazoo", lambda: client.create("/kazoo", data))
    ask("create", "/kazoo/mine", lambda: client.create("/kazoo/mine", b"", acl, ephemeral=True))
    ask("getData", "/kazoo/mine", lambda: client.get("/kazoo/mine"))
    client.add_auth("digest", "bob:bob-secret")
    said.append(Told("auth", None, None))
    ask("getData", "/kazoo/mine", lambda: client.get("/kazoo/mine"))
    ask("getACL", "/kazoo/mine", lambda: client.get_acls("/kazoo/mine"))
    ask("setACL", "/kazoo/mine", lambda: client.set_acls("/kazoo/mine", acl, 0))
    ask("create", "/kazoo/mine/sub", lambda: client.create("/kazoo/mine/sub"))
    got = ask("getData", "/kazoo", lambda: client.get("/kazoo"))
    assert got[0] == data
    ask("setData", "/kazoo", lambda: client.set("/kazoo", b"1", version=3))
    ask("exists", "/kazoo/not", lambda: client.exists("/kazoo/not"))
    said[-1] = Told("exists", "/kazoo/not", "NONODE")  # kazoo says None
    ask("getChildren", "/kazoo", lambda: client.get_children("/kazoo"))
    ask("getChildren2", "/kazoo", lambda: client.get_children("/kazoo", include_data=True))
    ask("sync", "/kazoo", lambda: client.sync("/kazoo"))
    many = client.transaction()
    many.create("/kazoo/many", b"a")
    many.check("/kazoo", 0)
    many.delete("/kazoo/many")
    ask("multi", "/kazoo/many", many.commit)
    ask("delete", "/kazoo/mine", lambda: client.delete("/kazoo/mine"))
    client.stop()
    client.close()
    said.append(Told("closeSession", None, None))


def asked_by_us(keeper: Keeper, told: dict[str, list[Told]]) -> None:
    """Ask with records that we write what clients have no method for."""
    path: dict[str, Any] = {"path": "/ours"}
    node = {**path, "data": b"x", "acl": [world()], "flags": 0}
    for kind, body in (
        ("create", node),
        ("check", {**path, "version": 0}),
        ("ping", {}),
        ("deleteContainer", {**path, "version": -1}),
        ("checkWatches", {**path, "type": 1}),
        ("setWatches", watches("data", "exist", "child")),
        ("delete", {**path, "version": 0}),
    ):
        if (kind in SINCE_36 and keeper.version < "3.6") or (
            kind in SINCE_39 and keeper.version < "3.9"
        ):
            continue
        ours = Ours(keeper.port)
        error = ours.ask(kind, body)
        told[ours.session] = [
            Told("connect", None, None),
            Told(kind, body.get("path"), error),
        ]
        ours.socket.close()


def world() -> dict[str, Any]:
    return {"perms": 31, "id": {"scheme": "world", "id": "anyone"}}


def watches(*kinds: str) -> dict[str, Any]:
    return {"relative_zxid": 1, **{f"{kind}_watches": [f"/{kind}"] for kind in kinds}}


class Ours:
    """A session of our own records."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 20)
        self._file = self.socket.makefile("rb")
        body = {
            "protocol_version": 0,
            "last_zxid_seen": 0,
            "timeout_ms": 20000,
            "session_id": 0,
            "passwd": bytes(16),
            "read_only": False,
        }
        self._send(writer(registry.layout_of("zk.ConnectRequest", 1))(body))
        answer = frames.decode_response(self._receive(), BY_NAME["zk.connect"])
        self.session = f"{answer.body['session_id'] & (1 << 64) - 1:#x}"

    def ask(self, kind: str, body: dict[str, Any]) -> str | None:
        """Return the name of the error that the answer tells."""
        key = BY_NAME[f"zk.{kind.lower()}"]
        xid = -2 if kind == "ping" else 1
        header = {"xid": xid, "type": key - BASE}
        layouts = (registry.layout_of("zk.RequestHeader", 0), registry.layout_of(request(key), 0))
        self._send(writer(layouts[0])(header) + writer(layouts[1])(body))
        answer = self._receive()
        while int.from_bytes(answer[:4], "big", signed=True) != xid:
            # setWatches for nodes that are not there: their events come before the answer, and who
            # leaves after an event may leave before the answer is sent.
            answer = self._receive()
        code = frames.decode_response(answer, key).header.get("err", 0)
        return error_name(code) if code else None

    def _send(self, payload: bytes) -> None:
        self.socket.sendall(len(payload).to_bytes(4, "big") + payload)

    def _receive(self) -> bytes:
        head = self._file.read(4)
        assert head, "the server closed the connection"
        return self._file.read(int.from_bytes(head, "big"))


def request(key: int) -> str:
    return TYPES[key - BASE].request


# --- rows


def test_rows_are_what_each_session_asked(seen: Seen) -> None:
    assert len(seen.told) >= 7
    for session, told in seen.told.items():
        asked = [each for each in told if not each.api.startswith("event ")]
        rows = [
            Told(
                row.api.removeprefix("zk."),
                path_of(row),
                row.errors[0].name if row.errors else None,
            )
            for row in seen.rows
            if row.zookeeper is not None
            and row.zookeeper.session_id == session
            and row.state != "event"
        ]
        assert without_repetition(rows, asked) == asked, session


def path_of(row: Row) -> str | None:
    assert row.zookeeper is not None
    return row.zookeeper.path


def without_repetition(rows: list[Told], asked: list[Told]) -> list[Told]:
    """Leave out what clients do unasked: pings, tokens of SASL behind the first one, and what they
    send when they come back."""
    unasked = {"ping", "setWatches", "setWatches2"} - {each.api for each in asked}
    kept: list[Told] = []
    for row in rows:
        again = row.api in ("connect", "auth", "sasl") and row in kept
        if row.api not in unasked and not again:
            kept.append(row)
    return kept


def test_rows_of_events_are_what_the_watchers_saw(seen: Seen) -> None:
    events = 0
    for session, told in seen.told.items():
        expected = [
            (each.api.removeprefix("event "), each.path)
            for each in told
            if each.api.startswith("event ")
        ]
        rows = [
            (row.zookeeper.event, row.zookeeper.path)
            for row in seen.rows
            if row.state == "event"
            and row.zookeeper is not None
            and row.zookeeper.session_id == session
        ]
        if expected:
            assert rows == expected
        events += len(expected)
    assert events >= 2


def test_all_is_decoded_to_the_last_byte(seen: Seen) -> None:
    # While a server starts it takes connections that it does not answer.
    early = {row.number for row in seen.rows if row.api == "zk.connect" and row.state == "lost"}
    for row in seen.rows:
        assert not row.undecoded, row
        assert row.state in ("answered", "event") or row.number in early, row
    for each in seen.exchanges:
        assert each.state == "event" or each.request is not None, each.number
        assert each.number in early or each.response is not None, each.number


def test_every_type_is_seen_in_both_directions(seen: Seen) -> None:
    both = {
        row.api.removeprefix("zk.")
        for row in seen.rows
        if row.state == "answered" or row.state == "event"
    }
    wanted = {each.name.removeprefix("zk.") for each in TYPES.values()}
    if seen.release < "3.6":
        wanted -= SINCE_36
    if seen.release < "3.9":
        wanted -= SINCE_39
    assert both >= wanted, wanted - both


# --- records


@pytest.fixture(scope="module")
def jute(java: None) -> Iterator[Asked]:
    classes = compiled(jars(f"zookeeper-{NEWEST}", KEEPERS[NEWEST]), ["Jute"])
    with Asked("Jute", classes.path, 128) as running:
        yield running


NO_RECORDS = frozenset({"zk.Nothing", "zk.MultiRequest", "zk.MultiResponse"})
RECORDS = tuple(name for name in DATA if name.startswith("zk.") and name not in NO_RECORDS)
MULTIS = {"zk.MultiRequest", "zk.MultiResponse"}
OTHER_NAMES = {"timeOut": "timeout_ms"}
KINDS = {"i": "int", "q": "long"}
EXAMPLES = settings(
    max_examples=8,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def snake(name: str) -> str:
    if name in OTHER_NAMES:
        return OTHER_NAMES[name]
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def newest(name: str) -> registry.Layout:
    return registry.layout_of(name, registry.message(name).versions.high)


def kind(wire: Wire) -> Any:
    """Return a wire as the reflection of the Java classes tells types."""
    match wire:
        case NumberWire():
            return KINDS[wire.code]
        case BoolWire():
            return "boolean"
        case StringWire():
            return "String"
        case BytesWire():
            return "byte[]"
        case ArrayWire():
            return [kind(wire.element)]
        case StructWire():
            return {"fields": fields(wire)}
    raise AssertionError(wire)


def fields(wire: StructWire) -> list[list[Any]]:
    return [[slot.name, kind(slot.wire)] for slot in wire.slots]


def named_alike(told: Any) -> Any:
    """Return the fields of a Java class with names as we write them."""
    if isinstance(told, dict):
        return {"fields": named_alike(told["fields"])}
    return [[snake(each[0]), element(each[1])] if isinstance(each, list) else each for each in told]


def element(told: Any) -> Any:
    if isinstance(told, list):
        return [element(told[0])]
    return named_alike(told) if isinstance(told, dict) else told


@pytest.mark.parametrize("name", RECORDS)
def test_declarations_equal_the_java_classes(name: str, jute: Asked) -> None:
    told = jute.ask(fields=name.removeprefix("zk."))
    assert told["ok"], told
    assert fields(newest(name).body) == named_alike(told["fields"])


def test_named_values_equal_the_java_classes(jute: Asked) -> None:
    told = jute.ask(constants=True)
    for name in ("ZooKeeperError", "ZooKeeperType", "ZooKeeperEvent", "ZooKeeperState"):
        ours = {text: number for number, text in ZOOKEEPER[name].items()}
        theirs = told[name]
        assert {key: ours.get(key) for key in theirs} == theirs, name


@pytest.mark.parametrize("name", [*RECORDS, *sorted(MULTIS)])
def test_the_java_classes_read_what_we_write_and_we_what_they_write(name: str, jute: Asked) -> None:
    layout = newest(name)

    @EXAMPLES
    @given(bodies(layout))
    def law(body: dict[str, Any]) -> None:
        body = within_the_plane(as_sent(body) if name in MULTIS else body)
        data = writer(layout)(body)
        told = jute.ask(record=name.removeprefix("zk."), hex=data.hex())
        assert told["ok"], told["error"]
        assert told["left"] == 0
        if name not in MULTIS:
            assert matches(layout.body, body, told["json"])
        again = bytes.fromhex(told["hex"])
        assert reader(layout)(again, 0) == (body, len(again))

    law()


def within_the_plane(value: Any) -> Any:
    """Return a value without characters that jute writes as two halves of three bytes each, which
    neither it nor we read as one again."""
    if isinstance(value, dict):
        return {key: within_the_plane(each) for key, each in value.items()}
    if isinstance(value, list):
        return [within_the_plane(each) for each in value]
    if isinstance(value, str):
        return "".join(min(c, "\uffff") for c in value)
    return value


READS = frozenset({4, 8})
MODES = {19: 4, 21: 5}
"""Flags of containers and of nodes with a TTL; the class refuses others."""


def as_sent(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body as there are: errors as ZooKeeper gives them, reads apart from writes."""
    (field,) = body
    operations = body[field]
    if field == "operations":
        reads = bool(operations) and operations[0]["type"] in READS
        operations = [each for each in operations if (each["type"] in READS) == reads]
        operations = [{**each, "err": -1} for each in operations]
        for each in operations:
            if each["flags"] is not None:
                each["acl"] = each["acl"] or []
                each["flags"] = MODES.get(each["type"], each["flags"] % 4)
    else:
        # The answer to each kind of create but the first is of type create2.
        operations = [
            {**each, "err": each["error"] or 0, "type": 15 if each["type"] > 15 else each["type"]}
            for each in operations
        ]
    return {field: operations}


def matches(wire: Wire, ours: Any, theirs: Any) -> bool:
    """Return whether our value is what the Java class read."""
    if ours is None or theirs is None:
        return ours is theirs
    match wire:
        case BytesWire():
            return base64.b64encode(ours).decode() == theirs
        case ArrayWire():
            pairs = zip(ours, theirs, strict=True)
            return all(matches(wire.element, one, other) for one, other in pairs)
        case StructWire():
            named = {snake(key): value for key, value in theirs.items()}
            return named.keys() == {slot.name for slot in wire.slots} and all(
                matches(slot.wire, ours[slot.name], named[slot.name]) for slot in wire.slots
            )
        case _:
            return bool(ours == theirs)
