"""Laws of decrypting a connection: the plaintext whatever the chunks; a reason and no wrong byte
where something was changed, is missing, or does not fit."""

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.captures.tls.keys.keylog import KeyLog
from kafkascope.captures.tls.keys.suites import SUITE_NAMES, Suite, suite_of
from kafkascope.captures.tls.sources import KeySources
from kafkascope.captures.tls.stream import TlsStream
from tests.captures.tls.reading import VARIANTS, Bytes, Read, assert_part, cut, keys, work
from tests.captures.tls.writer import CLIENT, SERVER, Talk

MODERN = (0x1301, 0x1302, 0x1303, 0x1304, 0x1305)
SUPPORTED = [suite for suite in map(suite_of, SUITE_NAMES) if suite.cipher]


def assert_whole(read: Read, talk: Talk) -> None:
    assert [bytes(each) for each in read.plain] == [bytes(each) for each in talk.plain]
    assert (read.tls.error, read.tls.note, read.gaps) == ("", "", [0, 0])
    assert read.tls.suite == talk.suite.name
    assert read.tls.decrypted == tuple(map(len, talk.plain))


@pytest.mark.parametrize("etm", [False, True])
@pytest.mark.parametrize("suite", SUPPORTED, ids=lambda suite: suite.name)
def test_every_suite(suite: Suite, etm: bool) -> None:
    talk = work(Talk(suite.number, etm=etm))
    assert_whole(Read(keys(talk)).take(talk.pairs()), talk)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_shape_of_a_handshake(name: str) -> None:
    talk = work(VARIANTS[name])
    assert_whole(Read(keys(talk)).take(talk.pairs()), talk)


@pytest.mark.parametrize("ems", [False, True])
@pytest.mark.parametrize(("suite", "kind"), [(0xC02F, "session"), (0x009C, "premaster")])
def test_other_names_of_a_secret(suite: int, kind: str, ems: bool) -> None:
    talk = work(Talk(suite, ems=ems))
    assert_whole(Read(keys(talk, kind=kind)).take(talk.pairs()), talk)


@pytest.mark.parametrize("by", ["id", "ticket", "bare"])
def test_a_resumed_session_has_the_secret_of_the_first(by: str) -> None:
    first = work(Talk(0xC02F, ticket=True))
    then = work(Talk(0xC02F, seed=2, resume=first, resume_by=by))
    known = keys(first)
    Read(known).take(first.pairs())
    read = Read(known).take(then.pairs())
    assert_whole(read, then)
    assert read.tls.resumed or by == "bare"
    alone = Read(keys(first)).take(then.pairs())
    assert not any(alone.tls.decrypted)
    assert alone.tls.error == "no-secret"


def test_many_key_updates_of_both_sides() -> None:
    talk = Talk(0x1303)
    for turn in range(40):
        talk.client(b"%d" % turn).key_update(CLIENT, requested=turn % 2 == 0)
        talk.server(b"answer %d" % turn)
        if turn % 3 == 0:
            talk.key_update(SERVER)
    read = Read(keys(talk)).take(talk.pairs())
    assert_whole(read, talk)
    assert read.tls.updates == sum(talk.updates)


def test_a_renegotiation() -> None:
    talk = work(Talk(0xC027))
    talk.renegotiate(asked=True)
    work(talk)
    assert_whole(Read(keys(talk)).take(talk.pairs()), talk)


TALKS = [work(Talk(0x1301, tickets=1)), work(Talk(0xC02F)), work(Talk(0xC013, etm=True))]
IDS = ["1.3", "1.2", "CBC"]


@pytest.mark.parametrize("talk", TALKS, ids=IDS)
@given(sizes=st.lists(st.integers(1, 4000), min_size=1, max_size=20))
@settings(max_examples=25)
def test_any_packets_carry_the_same(talk: Talk, sizes: list[int]) -> None:
    read = Read(keys(talk)).take(cut(talk.pairs(), sizes))
    assert_whole(read, talk)
    for chunk in read.chunks:
        starts = [piece.start for piece in chunk.pieces]
        assert starts[0] == 0
        assert starts == sorted(set(starts))
        assert starts[-1] < len(chunk.data)
        for one, two in pairwise(chunk.pieces):
            assert one.packet <= two.packet


@pytest.mark.parametrize("talk", TALKS, ids=IDS)
def test_a_byte_lies_where_its_ciphertext_lies(talk: Talk) -> None:
    """The first byte of a record has the time of its header, the last one of its end."""
    wire = (bytearray(), bytearray())
    for direction, data in talk.pairs():
        wire[direction].extend(data)
    read = Read(keys(talk)).take(cut(talk.pairs(), [700]))
    for chunk in read.chunks:
        for piece in chunk.pieces:
            assert 0 <= piece.at < len(wire[chunk.direction])
            assert piece.file == chunk.direction
    ends = [chunk.pieces[-1].time_ns for chunk in read.chunks if chunk.direction == SERVER]
    assert ends == sorted(ends)


@pytest.mark.parametrize("talk", TALKS, ids=IDS)
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=60)
def test_a_flipped_bit_makes_no_wrong_byte(talk: Talk, seed: int) -> None:
    source = random.Random(seed)
    sent = talk.pairs()
    chosen = [i for i, each in enumerate(talk.sent) if each.encrypted]
    index = source.choice(chosen)
    direction, data = sent[index]
    bit = source.randrange(len(data) * 8)
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    sent[index] = direction, bytes(changed)
    read = Read(keys(talk)).take(sent).close()
    for side in (CLIENT, SERVER):
        assert_part(bytes(read.plain[side]), talk, side)
    if read.plain != talk.plain:
        assert read.tls.error in ("damaged", "bad-secret", "no-handshake", "unsupported")


@pytest.mark.parametrize("talk", TALKS, ids=IDS)
@given(data=st.data())
@settings(max_examples=60)
def test_behind_a_hole_the_rest_is_read(talk: Talk, data: st.DataObject) -> None:
    wire = talk.pairs()
    first = next(i for i, each in enumerate(talk.sent) if each.encrypted and each.kind == 23)
    index = data.draw(st.integers(first, len(wire) - 1))
    direction, record = wire[index]
    begin = data.draw(st.integers(0, len(record) - 1))
    read = Read(keys(talk)).take(wire[:index])
    read.take([(direction, record[:begin])] if begin else [])
    rest = len(record) - begin
    size = data.draw(st.integers(1, rest + 30))
    read.lose(direction, size)
    left = size
    for way, each in [(direction, record[begin:]), *wire[index + 1 :]]:
        if way == direction and left:
            skipped = min(left, len(each))
            left -= skipped
            each = each[skipped:]
        if each:
            read.take([(way, each)])
    for side in (CLIENT, SERVER):
        assert_part(bytes(read.plain[side]), talk, side)
    other = 1 - direction
    assert read.plain[other] == talk.plain[other]
    missing = len(talk.plain[direction]) - len(read.plain[direction])
    lost = [e for e in talk.sent[index:] if e.direction == direction]
    # The records that the hole touches, and no others.
    assert missing <= sum(len(each.plain) for each in lost[:4])
    assert read.tls.error == "damaged" or not missing


@pytest.mark.parametrize("talk", TALKS, ids=IDS)
@given(count=st.integers(0, 60_000))
@settings(max_examples=25)
def test_any_prefix_gives_a_prefix(talk: Talk, count: int) -> None:
    left = count
    read = Read(keys(talk))
    for direction, data in talk.pairs():
        read.take([(direction, data[:left])] if left else [])
        left -= min(left, len(data))
    for side in (CLIENT, SERVER):
        assert bytes(talk.plain[side]).startswith(bytes(read.plain[side]))
    assert read.tls.error == ""


@given(
    st.lists(st.tuples(st.integers(0, 1), st.binary(max_size=300)), max_size=20),
    st.integers(0, 40),
    st.booleans(),
)
def test_garbage_tells_something_or_nothing(told: Bytes, behind: int, midstream: bool) -> None:
    talk = TALKS[0]
    read = Read(keys(talk), midstream=midstream)
    read.take([] if midstream else talk.pairs()[:behind]).take(told)
    for side in (CLIENT, SERVER):
        assert_part(bytes(read.plain[side]), talk, side)


@pytest.mark.parametrize("suite", MODERN)
def test_a_connection_without_its_handshake(suite: int) -> None:
    talk = Talk(suite, tickets=1)
    for turn in range(30):
        talk.client(b"request %d" % turn).server(b"answer %d" % turn)
    middle = len(talk.sent) // 2
    others = [Talk(suite, seed=seed) for seed in range(2, 6)]
    read = Read(keys(*others, talk), midstream=True).take(talk.pairs()[middle:])
    wanted = [e for e in talk.sent[middle:] if e.kind == 23]
    for side in (CLIENT, SERVER):
        assert bytes(read.plain[side]) == b"".join(e.plain for e in wanted if e.direction == side)
    assert (read.tls.error, read.tls.suite) == ("", talk.suite.name)
    assert read.stream.client == CLIENT
    unknown = Read(keys(*others), midstream=True).take(talk.pairs()[middle:])
    assert (unknown.tls.error, unknown.tls.decrypted) == ("no-handshake", (0, 0))
    assert "65536 sequence numbers" in unknown.tls.note


def test_what_is_not_supported_says_so() -> None:
    talk = work(Talk(0x1301))
    hello = next(i for i, e in enumerate(talk.sent) if e.direction == SERVER)
    sent = talk.pairs()
    sent[hello] = SERVER, sent[hello][1].replace(b"\x13\x01", b"\x13\x77", 1)
    read = Read(keys(talk)).take(sent)
    assert read.tls.error == "unsupported"
    assert "0x1377" in read.tls.note


def test_a_log_without_the_secrets_of_the_handshake_is_enough() -> None:
    talk = work(Talk(0x1301))
    log = KeyLog()
    log.add("".join(x for x in talk.keylog().splitlines(True) if "HANDSHAKE" not in x).encode())
    assert_whole(Read(KeySources(log)).take(talk.pairs()), talk)


def test_encrypted_alerts_are_read() -> None:
    talk = Talk(0x1301)
    talk.alert(SERVER, 116)
    read = Read(keys(talk)).take(talk.pairs())
    assert read.tls.result == ("alert", SERVER, 116)
    talk = work(Talk(0x1301)).alert(CLIENT, 70)
    read = Read(keys(talk)).take(talk.pairs())
    assert read.tls.result == ("established", None, None)
    assert read.tls.alerts == ((CLIENT, 70),)


def test_data_of_a_client_does_not_say_that_the_server_took_its_certificate() -> None:
    """Go's crypto/tls sends its first request in one segment with its Finished."""
    talk = Talk(0x1301).client(b"request")
    read = Read(keys(talk)).take(talk.pairs())
    assert read.tls.result is None
    read.take(talk.alert(SERVER, 42).pairs()[-1:])
    assert read.tls.result == ("alert", SERVER, 42)
    talk = Talk(0x1301).client(b"request").server(b"response").alert(SERVER, 42)
    assert Read(keys(talk)).take(talk.pairs()).tls.result == ("established", None, None)


def test_a_state_goes_to_another_process() -> None:
    for talk in TALKS:
        known = keys(talk)
        pairs = cut(talk.pairs(), [997])
        for stop in range(0, len(pairs), 7):
            read = Read(known).take(pairs[:stop])
            state = read.stream.dump()
            read.stream = TlsStream(read.connection, CLIENT, known).load(state)
            read.take(pairs[stop:])
            assert_whole(read, talk)


def test_searches_have_an_end_in_all() -> None:
    talk = work(Talk(0x1301))
    known = keys(talk)
    known.sequences = 3
    wire = talk.pairs()
    first = next(i for i, e in enumerate(talk.sent) if e.direction == CLIENT and e.kind == 23)
    read = Read(known).take(wire[: first + 1]).lose(CLIENT, 300_000).take(wire[first + 9 :])
    assert known.sequences == 0
    assert read.tls.error == "damaged"
    assert bytes(read.plain[CLIENT]) == talk.sent[first].plain


HOLES = [Talk(0x1301, tickets=2), Talk(0x1302, retry=True), Talk(0x1303), Talk(0x1304, split=90)]
HOLES += [Talk(0xC02F, ticket=True), Talk(0xC014, etm=True), Talk(0x002F), Talk(0x009E, ems=False)]


@pytest.mark.parametrize("talk", [work(each) for each in HOLES], ids=lambda each: each.suite.name)
@pytest.mark.parametrize("size", [200, 1400])
def test_behind_a_hole_in_the_handshake_all_data_is_read(talk: Talk, size: int) -> None:
    """But in TLS 1.2, where the keys depend on both hellos."""
    wire = cut(talk.pairs(), [size])
    begun = Read(keys(talk))
    for index, packet in enumerate(wire):
        begun.take([packet])
        if any(begun.plain):
            break
        read = Read(keys(talk)).take(wire[:index]).lose(packet[0], len(packet[1]))
        read.take(wire[index + 1 :])
        found = [bytes(each) for each in read.plain]
        modern = talk.suite.number >> 8 == 0x13
        told = b"".join(data for direction, data in wire[:index] if direction == SERVER)
        if modern or (talk.server_random in told and talk.suite.number.to_bytes(2, "big") in told):
            assert found == [bytes(each) for each in talk.plain], index
            assert read.tls.error in ("", "damaged")
        else:
            assert found == [b"", b""] or found == [bytes(each) for each in talk.plain], index
            assert read.tls.error in ("no-handshake", "") or any(found)
