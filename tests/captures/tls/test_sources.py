"""What is tried on connections without a handshake has an end, however many they are."""

from collections.abc import Iterator

from kafkascope.captures.limits import LIMITS, CaptureLimits
from kafkascope.captures.tls.keys.keylog import KeyLog, log_line
from kafkascope.captures.tls.sources import KeySources
from tests.captures.tls.reading import Read
from tests.captures.tls.writer import Talk

RANDOMS = [number.to_bytes(32, "big") for number in range(100)]


class CountedLog(KeyLog):
    """A key log that counts how often all of it was looked at."""

    looked = 0

    def randoms(self) -> Iterator[bytes]:
        self.looked += 1
        return super().randoms()


def counted(*talks: Talk) -> CountedLog:
    log = CountedLog()
    for name in RANDOMS:
        log.add(log_line(b"CLIENT_TRAFFIC_SECRET_0", name, b"\1" * 32))
    for talk in talks:
        log.add(talk.keylog().encode())
    return log


def midstream(keys: KeySources, talk: Talk) -> Read:
    return Read(keys, midstream=True).take(talk.pairs()[-1:])


def talks(count: int) -> list[Talk]:
    return [Talk(0x1301, seed=seed).client(b"request") for seed in range(1, 1 + count)]


def test_the_newest_come_first_and_no_more_than_may_be_tried() -> None:
    keys = KeySources(counted())
    assert keys.unclaimed() == (RANDOMS[::-1], 0)
    keys.claimed.update(RANDOMS[90:])
    keys.trials = 20
    assert keys.unclaimed() == (RANDOMS[80:90][::-1], 80)
    keys.before = 2
    assert keys.unclaimed() == (RANDOMS[89:90], 89)
    keys.trials = 0
    assert keys.unclaimed() == ([], 100)


def test_those_with_a_connection_are_not_passed_over_for_ever() -> None:
    keys = KeySources(log := counted(), limits=CaptureLimits(claimed_randoms=10))
    assert keys.unclaimed() == (RANDOMS[::-1], 0)
    keys.claimed = CountedSet(RANDOMS[50:])
    for _ in range(20):
        assert keys.unclaimed() == (RANDOMS[:50][::-1], 0)
    assert keys.claimed.asked == 100 + 100 + 19 * 50
    assert log.looked == 1


class CountedSet(set[bytes]):
    """Counts questions."""

    asked = 0

    def __contains__(self, name: object) -> bool:
        self.asked += 1
        return super().__contains__(name)


def test_a_key_log_is_looked_at_once_for_all_connections() -> None:
    keys = KeySources(log := counted())
    keys.trials = 4
    reads = [midstream(keys, talk) for talk in talks(30)]
    assert {read.tls.error for read in reads} == {"no-handshake"}
    assert "2 secrets" in reads[0].tls.note
    assert "0 secrets" in reads[3].tls.note
    assert reads[3].tls.note.endswith("(those of 100 other connections were not tried)")
    assert (log.looked, keys.trials) == (1, 0)


def test_what_is_tried_before_one_fits_has_an_end_too() -> None:
    opened = talks(6)
    keys = KeySources(counted(*reversed(opened)))
    keys.before = 4
    reads = [midstream(keys, talk) for talk in opened]
    # Their secrets are the last ones of the log, those of each connection behind its successor's.
    assert [sum(read.tls.decrypted) for read in reads][:2] == [7, 7]
    assert sum(sum(read.tls.decrypted) for read in reads) < 6 * 7
    assert keys.before <= 0
    assert keys.trials == LIMITS.secret_trials
    assert "were not tried" in reads[-1].tls.note


def test_the_other_direction_of_a_connection_is_read_whatever_was_tried() -> None:
    talk = Talk(0x1301).client(b"request").server(b"answer")
    keys = KeySources(counted(talk))
    read = Read(keys, midstream=True).take(talk.pairs()[-2:-1])
    keys.trials = keys.before = 0
    read.take(talk.pairs()[-1:])
    assert list(map(bytes, read.plain)) == [b"request", b"answer"]


def test_lines_beside_the_one_that_was_found_come_first() -> None:
    opened = talks(60)
    keys = KeySources(log := counted(*opened))
    for number in (*range(10), *range(30, 9, -1)):
        read = midstream(keys, opened[number])
        assert sum(read.tls.decrypted) == 7
    # The first of each run is searched from the end on; any other one is beside it.
    spent = LIMITS.fitting_trials - keys.before
    assert spent < 2 * (60 + 40) + 31 * 2 * 3
    assert log.looked == 1
    keys.found(RANDOMS[50])
    assert keys.unclaimed()[0][:3] == [RANDOMS[51], RANDOMS[49], RANDOMS[52]]
