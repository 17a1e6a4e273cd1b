"""Laws of waiting for secrets: whenever the lines of a key log come, what is read in the end is
what would have been read with all of them from the start."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.captures.model import Chunk, Closed, Gap
from kafkascope.captures.tls.keys.keylog import KeyLog
from kafkascope.captures.tls.sources import KeySources
from tests.captures.tls.reading import VARIANTS, Bytes, Read, cut, keys, work
from tests.captures.tls.writer import CLIENT, SERVER, Talk


class Late(Read):
    """A connection that is read while its key log is written."""

    def __init__(self, *, midstream: bool = False, known: KeySources | None = None) -> None:
        self.log = KeyLog()
        self._queue: deque[Chunk | Gap | Closed] = deque()
        super().__init__(known or KeySources(self.log, growing=True), midstream=midstream)

    def _happened(self, event: Chunk | Gap | Closed) -> None:
        self._queue.append(event)
        self._go_on()

    def _go_on(self) -> None:
        while self._queue and self.stream.waiting is None:
            super()._happened(self._queue.popleft())

    def line(self, line: str) -> Late:
        self.log.add(line.encode())
        self.look()
        return self

    def look(self) -> None:
        for plain in self.stream.go_on():
            assert isinstance(plain, Chunk | Gap)
            self.taken(plain)
        self._go_on()

    def give_up(self) -> Late:
        self.stream.give_up("30 s")
        self.look()
        assert not self._queue
        return self


def assert_same(found: Read, whole: Read) -> None:
    assert found.plain == whole.plain
    assert found.gaps == whole.gaps
    assert asdict(found.tls) == asdict(whole.tls)
    assert [chunk.pieces for chunk in found.chunks] == [chunk.pieces for chunk in whole.chunks]


TALKS = VARIANTS | {
    "1.2": Talk(0xC02F),
    "RSA": Talk(0x009C),
    "CBC": Talk(0x002F, ems=False),
    "alert": Talk(0x1302).alert(CLIENT, 46),
}
for each in ("1.2", "RSA", "CBC"):
    work(TALKS[each])


def told(name: str, kind: str) -> list[str]:
    return TALKS[name].keylog(kind).splitlines(keepends=True)


KINDS = [(name, "random") for name in TALKS]
KINDS += [("1.2", "session"), ("RSA", "session"), ("RSA", "premaster"), ("CBC", "premaster")]


@pytest.mark.parametrize(("name", "kind"), KINDS)
@given(data=st.data())
@settings(max_examples=12)
def test_lines_may_come_at_any_time(name: str, kind: str, data: st.DataObject) -> None:
    talk, lines = TALKS[name], told(name, kind)
    wire = cut(talk.pairs(), [data.draw(st.sampled_from([700, 4000, 60_000]))])
    hole = data.draw(st.none() | st.integers(0, len(wire) - 1))
    times = sorted(data.draw(st.lists(st.integers(0, len(wire)), **_exactly(len(lines)))))
    late = Late()
    for index, packet in enumerate(wire):
        while times and times[0] == index:
            late.line(lines[len(lines) - len(times)])
            times.pop(0)
        _one(late, packet, lost=index == hole)
    late.close()
    for line in lines[len(lines) - len(times) :]:
        late.line(line)
    whole = Read(keys(talk, kind=kind))
    for index, packet in enumerate(wire):
        _one(whole, packet, lost=index == hole)
    whole.close()
    if late.stream.waiting is not None:
        late.give_up()  # a hole has taken what would have told that nothing fits
        late.tls.note = late.tls.note.removesuffix("; it was waited for 30 s")
    assert_same(late, whole)


def _exactly(count: int) -> dict[str, int]:
    return {"min_size": count, "max_size": count}


def _one(read: Read, packet: tuple[int, bytes], *, lost: bool) -> None:
    if lost:
        read.lose(packet[0], len(packet[1]))
    else:
        read.take([packet])


@pytest.mark.parametrize("name", TALKS)
def test_lines_may_come_in_any_order(name: str) -> None:
    talk, lines = TALKS[name], told(name, "random")
    if name != "early data":  # whose line is the first, or is not there
        random.Random(5).shuffle(lines)
    late = Late().take(talk.pairs())
    for line in lines:
        late.line(line)
    whole = Read(keys(talk)).take(talk.pairs())
    assert (late.plain, late.gaps, late.tls.error) == (whole.plain, whole.gaps, "")


def test_a_line_that_is_cut_is_none_yet() -> None:
    talk = work(Talk(0x1301))
    late = Late()
    late.take(talk.pairs())
    text = talk.keylog()
    for at in range(0, len(text) - 1, 7):
        assert not late.plain[SERVER]
        late.line(text[at : at + 7])
    late.line("\n")
    assert late.plain == talk.plain


def test_what_is_not_logged_is_waited_for_until_it_is_given_up() -> None:
    for talk in (work(Talk(0x1301)), work(Talk(0xC02F))):
        late = Late()
        late.take(talk.pairs()).close()
        assert late.stream.waiting is not None
        assert late.tls.error == ""
        late.line(Talk(0x1302, seed=9).keylog())
        assert late.stream.waiting is not None
        late.give_up()
        assert late.tls.error == "no-secret"
        random_ = talk.client_random.hex()
        assert late.tls.note == (
            f"the key log has no line for client random {random_}; it was waited for 30 s"
        )
        assert not late.stream.readable


def test_a_secret_that_does_not_fit_is_not_waited_for() -> None:
    talk = work(Talk(0x1301))
    late = Late().line("".join(f"{line[:-1]}0\n" for line in talk.keylog().split("\n") if line))
    wrong = talk.keylog().translate(str.maketrans("0123456789abcdef", "123456789abcdef0"))
    random_ = talk.client_random.hex()
    lines = [line.split() for line in wrong.splitlines()]
    late.line("".join(f"{label} {random_} {secret}\n" for label, _, secret in lines))
    late.take(talk.pairs())
    assert late.stream.waiting is None
    assert late.tls.error == "bad-secret"


@pytest.mark.parametrize("suite", [0x1301, 0x1303])
def test_a_connection_without_its_handshake_waits_for_its_lines(suite: int) -> None:
    talk = Talk(suite, tickets=1)
    for turn in range(20):
        talk.client(b"request %d" % turn).server(b"answer %d" % turn)
    middle: Bytes = talk.pairs()[len(talk.sent) // 2 :]
    late = Late(midstream=True)
    late.take(middle[:9])
    others = [Talk(suite, seed=seed) for seed in range(2, 4)]
    for line in others[0].keylog().splitlines(keepends=True):
        late.line(line)
        assert late.stream.waiting is not None
    for line in (talk.keylog() + others[1].keylog()).splitlines(keepends=True):
        late.line(line)
    late.take(middle[9:])
    whole = Read(keys(*others, talk), midstream=True).take(middle)
    assert any(whole.plain[CLIENT])
    assert_same(late, whole)


def test_without_a_handshake_each_secret_is_tried_once() -> None:
    talk = work(Talk(0x1301))
    late = Late(midstream=True)
    late.take(talk.pairs()[-3:])
    known = late.keys
    before = known.trials
    for seed in range(2, 6):
        for line in Talk(0x1301, seed=seed).keylog().splitlines(keepends=True):
            late.line(line)
    assert before - known.trials == 2 * 4
    late.give_up()
    assert late.tls.note.startswith(
        "the capture starts after the handshake; 8 secrets of the key log, with 65536 sequence "
        "numbers each, do not match"
    )
    assert late.tls.note.endswith("it was waited for 30 s")


def test_an_alert_that_is_not_encrypted_is_told_at_once() -> None:
    talk = Talk(0x1301)
    hellos = [each for each in talk.pairs() if each[1][0] == 22][:2]
    late = Late()
    late.take([*hellos, (CLIENT, bytes.fromhex("15030300020246"))])
    assert late.tls.result == ("alert", CLIENT, 70)
    assert late.stream.waiting is None


def test_a_handshake_that_fails_needs_no_secrets_of_what_never_came() -> None:
    talk = Talk(0x1301)
    server = next(i for i, each in enumerate(talk.sent) if each.encrypted)
    late = Late()
    for line in talk.keylog().splitlines(keepends=True):
        if "HANDSHAKE" in line:
            late.line(line)
    late.take(talk.pairs()[: server + 1])
    assert late.stream.waiting is None
    assert talk.sent[server].direction == SERVER
