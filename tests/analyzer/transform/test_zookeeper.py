"""ZooKeeper's messages on their way out: secrets and names stay here, what happened can be read."""

from pathlib import Path

import pytest

from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.model import Side
from kafkascope.analyzer.transform.names.pseudonyms import Pseudonyms
from kafkascope.analyzer.transform.names.znodes import renamed_node, renamed_path
from kafkascope.analyzer.transform.redaction import Redaction
from kafkascope.dissectors.registry import layout_of, message, write_layout
from kafkascope.dissectors.zookeeper.types import BASE, CONNECT, EVENT, TYPES
from tests.analyzer.transform.cuts import cut_to
from tests.analyzer.unique_words import FORMS, WORD, Filler
from tests.kit.run import output
from tests.kit.samples import CAPTURES, SAMPLES, rows_of

SAMPLE = SAMPLES / "zookeeper.pcap"
SIDES: tuple[Side, ...] = ("request", "response")
SECRETS = (b"alice-secret", b"bob-secret", b"carol-secret")


def payload(filler: Filler, kind: int, name: str, side: str) -> bytes:
    layout = layout_of(name, message(name).versions.high)
    nothing = {"operations": [], "results": []}
    body = write_layout(layout, nothing if "Multi" in name else filler.body(layout))
    if kind == CONNECT:
        return body
    head = "zk.ReplyHeader" if side == "response" else "zk.RequestHeader"
    fields = {"xid": 1, "type": kind} if side == "request" else {"xid": 1, "zxid": 1, "err": 0}
    return write_layout(layout_of(head, 0), fields) + body


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind != EVENT])
def test_no_word_of_any_message_is_left_where_all_is_redacted(kind: int, form: str) -> None:
    redaction, filler, found = Redaction("all"), Filler(form), TYPES[kind]
    asked = payload(filler, kind, found.request, "request")
    told = payload(filler, kind, found.response, "response")
    made = redaction.request(asked, BASE + kind), redaction.response(told, BASE + kind, 0)
    for data in made:
        assert not WORD.search(data)
    for data in (asked[:-1], told[:-1]):
        for side in SIDES:
            left = Redaction("none").frame(data, side, BASE + kind, 0)
            assert len(left) == len(data)


def test_operations_of_a_multi_are_redacted_one_by_one() -> None:
    layout = layout_of("zk.MultiRequest", 0)
    empty = dict.fromkeys(slot.name for slot in layout.body.slots[0].wire.element.slots)  # type: ignore[union-attr]
    create = {"type": 1, "err": -1, "path": "/brokers/topics/orders", "flags": 0, "acl": []}
    body = {
        "operations": [
            empty | create | {"data": b'{"partitions":{"0":[1]},"version":1}'},
            empty | {"type": 13, "err": -1, "path": "/controller_epoch", "version": 3},
            empty | {"type": 5, "err": -1, "path": "/app/orders", "data": b"note", "version": -1},
        ]
    }
    made = Redaction("all").body(layout, body)["operations"]
    paths = [each["path"] for each in made]
    assert paths == ["/brokers/topics/topic-1", "/controller_epoch", "/znode-1/topic-1"]
    assert [each["data"] for each in made] == [
        b'{"partitions":{"0":[1]},"version":1}',
        None,
        b"****",
    ]


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("/", "/"),
        ("/brokers/ids/7", "/brokers/ids/7"),
        ("/brokers/topics/orders/partitions/3/state", "/brokers/topics/topic-1/partitions/3/state"),
        ("/consumers/billing/owners/orders/0", "/consumers/group-1/owners/topic-1/0"),
        ("/prod/config/users/alice", "/znode-1/config/users/user-1"),
        ("/config/changes/config_change_0000000012", "/config/changes/config_change_0000000012"),
        ("/kafka-acl/Topic/orders", "/kafka-acl/Topic/name-1"),
        ("orders", "znode-1"),
        ("partitions", "partitions"),
    ],
)
def test_paths_keep_what_is_kafkas_own(path: str, other: str) -> None:
    assert renamed_path(Pseudonyms(), path) == other


def test_contents_of_nodes_keep_their_form() -> None:
    names = Pseudonyms()
    broker = (
        b'{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT","SHOP":"SSL"},'
        b'"endpoints":["SHOP://kafka7.shop.example:9092"],"host":"kafka7.shop.example",'
        b'"rack":"a1","port":9092,"timestamp":"1795396593554","version":4,"secret":"no"}'
    )
    made = renamed_node(names, broker)
    assert made == (
        b'{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT","listener-1":"SSL"},'
        b'"endpoints":["listener-1://host-1:9092"],"host":"host-1",'
        b'"rack":"rack-1","port":9092,"timestamp":"1795396593554","version":4,"secret":"********"}'
    )
    assert renamed_node(names, b"17") == b"17"
    assert renamed_node(names, b"billing_one-0") == b"*" * 13
    change = b'{"version":2,"entity_path":"topics/orders"}'
    assert b"orders" not in renamed_node(names, change)


@pytest.mark.parametrize("options", [[], ["--anonymize"]])
def test_a_cut_tells_the_same_without_secrets(options: list[str], tmp_path: Path) -> None:
    out = tmp_path / "cut.pcapng"
    output("cut", SAMPLE, "-o", out, *options)
    before, after = rows_of(SAMPLE), rows_of(out)
    assert any(secret in SAMPLE.read_bytes() for secret in SECRETS)
    assert not any(secret in out.read_bytes() for secret in SECRETS)

    def story(row: Row) -> object:
        codes = [error.code for error in row.errors]
        return (row.api, row.state, row.correlation_id, codes, row.zookeeper._replace(path=None))

    assert list(map(story, after)) == list(map(story, before))
    paths = [
        (row.zookeeper.path, other.zookeeper.path)
        for row, other in zip(before, after, strict=True)
        if row.zookeeper and other.zookeeper and row.zookeeper.path
    ]
    assert len(set(paths)) == len({path for path, _ in paths}) == len({path for _, path in paths})
    if not options:
        assert all(path == other for path, other in paths)
    else:
        assert b"/tour" not in out.read_bytes()


@pytest.mark.parametrize("anonymous", [False, True])
def test_a_cut_has_the_handshakes_without_which_nobody_knows_what_it_is(
    tmp_path: Path, anonymous: bool
) -> None:
    """The servers are not on ZooKeeper's port."""
    source = CAPTURES / "zookeeper-groups.pcapng.gz"
    target = tmp_path / "cut.pcapng"
    cut_to(source, target, anonymous=anonymous, keep=lambda each: each.api == "zk.closeSession")
    rows = rows_of(target)
    assert [row.api for row in rows].count("zk.closeSession") == 5
    assert {row.api for row in rows} == {"zk.connect", "zk.closeSession"}
    assert all(row.state == "answered" and row.zookeeper is not None for row in rows)
    sessions = [row.zookeeper.session_id for row in rows if row.zookeeper is not None]
    assert len(set(sessions)) == 5
