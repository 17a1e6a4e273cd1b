"""Key logs: what is read of them, in whatever pieces and company it comes."""

import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.tls.keys.keylog import KeyLog, LogLines, Secrets, log_line

RANDOM = bytes(range(32))
OTHER = bytes(range(100, 132))
MASTER = bytes(range(48))
SECRET = b"\xab" * 32
PREMASTER = b"\3\3" + bytes(46)
LABELS = {
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET": "client_handshake",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET": "server_handshake",
    "CLIENT_TRAFFIC_SECRET_0": "client_traffic",
    "SERVER_TRAFFIC_SECRET_0": "server_traffic",
    "CLIENT_EARLY_TRAFFIC_SECRET": "client_early",
}


def read(data: bytes | str, pieces: int = 1 << 20) -> KeyLog:
    log = KeyLog()
    data = data.encode() if isinstance(data, str) else data
    for at in range(0, len(data), pieces):
        log.add(data[at : at + pieces])
    log.finish()
    return log


def facts(log: KeyLog) -> object:
    return ({**log._old, **log._new}, log.lines, log.unusable, log.changes)


def line(label: str = "CLIENT_RANDOM", name: bytes = RANDOM, secret: bytes = MASTER) -> str:
    return f"{label} {name.hex()} {secret.hex()}\n"


def test_each_kind_of_line() -> None:
    session = b"\x13" * 32
    text = (
        "# a comment\n\n"
        + line()
        + "".join(line(each, OTHER, bytes([i]) * 48) for i, each in enumerate(LABELS))
        + line("RSA", b"premaste", PREMASTER)
        + f"RSA Session-ID:{session.hex().upper()} Master-Key:{MASTER.hex().upper()}\n"
    )
    log = read(text)
    assert log.secrets(RANDOM) == Secrets(MASTER)
    found = log.secrets(OTHER)
    assert found._asdict() == {
        "master": None,
        **{name: bytes([i]) * 48 for i, name in enumerate(LABELS.values())},
    }
    assert log.by_premaster(b"premaste") == PREMASTER
    assert log.by_session(session) == MASTER
    assert (log.lines, log.unusable, log.changes, log.limited) == (8, 0, 8, False)
    assert log.secrets(session) is None
    assert log.by_session(RANDOM) is None
    assert log.by_premaster(RANDOM[:8]) is None


@pytest.mark.parametrize(
    "text",
    [
        line(),
        line().rstrip(),
        line().replace("\n", "\r\n"),
        f"  \t CLIENT_RANDOM\t{RANDOM.hex().upper()}   {MASTER.hex()} \t \n",
        "\ufeff" + line(),
        "garbage\n" + line(),
        "\0\xff\xfe\n" + line(),
        line()[:100] + "\n" + line(),
        line() + line()[:100],
        line() + line(),
        "#" * 5000 + "\n" + line(),
        "x" * 100_000 + "\n" + line(),
        line("CLIENT_RANDOM", RANDOM, b"\1" * 48) + line(),
    ],
)
def test_a_line_is_found_in_any_company(text: str) -> None:
    assert read(text).secrets(RANDOM) == Secrets(MASTER)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-16-le", "utf-8-sig"])
def test_what_powershell_writes(encoding: str) -> None:
    text = line().replace("\n", "\r\n") + line("CLIENT_TRAFFIC_SECRET_0", OTHER, SECRET)
    data = text.encode(encoding)
    if encoding.endswith("e"):
        data = "\ufeff".encode(encoding) + data
    for pieces in (1, 3, 1000):
        log = read(data, pieces)
        assert log.secrets(RANDOM) == Secrets(MASTER)
        assert log.secrets(OTHER) == Secrets(client_traffic=SECRET)
        assert log.unusable == 0


@pytest.mark.parametrize(
    "text",
    [
        "CLIENT_RANDOM",
        line(name=RANDOM[:31]),
        line(name=RANDOM + b"x"),
        line(secret=MASTER[:47]),
        line(secret=SECRET),
        line("CLIENT_TRAFFIC_SECRET_0", RANDOM, SECRET[:31]),
        line("CLIENT_TRAFFIC_SECRET_0", RANDOM, SECRET + b"x"),
        line("RSA", b"premast", PREMASTER),
        line("RSA", b"premaste", PREMASTER + b"x"),
        f"RSA Session-ID: Master-Key:{MASTER.hex()}",
        f"RSA Session-ID:{bytes(33).hex()} Master-Key:{MASTER.hex()}",
        f"RSA Session-ID:{RANDOM.hex()} {MASTER.hex()}",
        line().replace("00", "0x", 1),
        line()[:-2],
        line().rstrip() + " more",
        "Kafka version: 4.4.0 (release)",
        "x" * 100_000,
        line().replace(" ", " " * LIMITS.keylog_line_bytes, 1),
    ],
)
def test_damaged_lines_are_counted(text: str) -> None:
    log = read(text)
    assert facts(log) == ({}, 1, 1, 0)


def test_labels_of_no_use_here_are_no_damage() -> None:
    log = read(line("EXPORTER_SECRET", RANDOM, SECRET) + line("ECH_SECRET") + "# x\n \n")
    assert facts(log) == ({}, 2, 0, 0)


def test_changes_grow_with_what_is_new_only() -> None:
    log = read(line())
    assert log.changes == 1
    log.add(line().encode())
    log.add(b"#\n" + line("EXPORTER_SECRET").encode())
    assert log.changes == 1
    log.add(line("CLIENT_TRAFFIC_SECRET_0", RANDOM, SECRET).encode()[:-1])
    assert log.changes == 1
    log.add(b"\n")
    assert log.changes == 2
    assert log.secrets(RANDOM) == Secrets(MASTER, client_traffic=SECRET)


def test_randoms_come_in_order_and_of_tls_13_alone() -> None:
    names = [bytes([each]) * 32 for each in (9, 3, 7, 5)]
    labels = ["CLIENT_TRAFFIC_SECRET_0", "CLIENT_RANDOM", "SERVER_TRAFFIC_SECRET_0"]
    labels.append("CLIENT_HANDSHAKE_TRAFFIC_SECRET")
    log = read("".join(line(*each, MASTER) for each in zip(labels, names, strict=True)))
    found = log.randoms()
    assert next(found) == names[0]
    log.add(line("CLIENT_TRAFFIC_SECRET_0", OTHER, SECRET).encode())
    assert list(found) == [names[2]]
    assert list(log.randoms()) == [names[0], names[2], OTHER]


@pytest.mark.parametrize("count", [50, 100, 101, 150, 1000])
def test_the_oldest_go_first(count: int) -> None:
    log = KeyLog(100)
    for number in range(count):
        log.add(log_line(b"CLIENT_RANDOM", number.to_bytes(32, "big"), MASTER))
    kept = [number for number in range(count) if log.secrets(number.to_bytes(32, "big"))]
    assert kept == list(range(count - len(kept), count))
    assert min(50, count) <= len(kept) <= 100
    assert log.limited == (len(kept) < count) == (count > 100)


def test_what_is_old_may_become_more() -> None:
    log = KeyLog(100)
    first = [line("SERVER_TRAFFIC_SECRET_0", bytes([each]) * 32, SECRET) for each in range(60)]
    second = [line("CLIENT_TRAFFIC_SECRET_0", bytes([each]) * 32, MASTER) for each in range(20)]
    log.add("".join(first + second).encode())
    assert not log.limited
    assert len(list(log.randoms())) == 60
    for each in range(20):
        assert log.secrets(bytes([each]) * 32) == Secrets(
            client_traffic=MASTER, server_traffic=SECRET
        )
    assert log.changes == 80


def test_lines_are_written_again() -> None:
    session = b"\x13" * 32
    text = (
        line()
        + line("SERVER_TRAFFIC_SECRET_0", OTHER, SECRET)
        + line("CLIENT_TRAFFIC_SECRET_0", OTHER, SECRET)
        + line("RSA", b"premaste", PREMASTER)
        + f"RSA Session-ID:{session.hex()} Master-Key:{MASTER.hex()}\n"
    )
    log = read(text)
    written = log.all_lines()
    assert sorted(written.decode().splitlines()) == sorted(text.splitlines())
    again = read(written)
    assert (again.secrets(OTHER), again.changes) == (log.secrets(OTHER), 5)
    assert log.lines_of(OTHER).count(b"\n") == 2
    assert log.lines_of(bytes(32)) == b""
    assert log_line(b"CLIENT_RANDOM", RANDOM, MASTER).decode() == line()


def test_logs_that_grow_at_the_same_time() -> None:
    log = KeyLog()
    one, two = LogLines(), LogLines()
    first, second = line().encode(), line("CLIENT_TRAFFIC_SECRET_0", OTHER, SECRET).encode()
    turns = ((one, first[:50]), (two, second[:70]), (one, first[50:]), (two, second[70:]))
    for cutter, data in turns:
        for each in cutter.add(data):
            log.take(each)
    assert log.unusable == 0
    assert log.secrets(RANDOM)
    assert log.secrets(OTHER)


def test_secrets_do_not_print_themselves() -> None:
    log = read(line(secret=b"\x17" * 48))
    found = log.secrets(RANDOM)
    assert "17" not in f"{found!r}{log!r}"
    assert repr(found) == "Secrets(master)"


WORDS = st.sampled_from(
    [
        *(b"CLIENT_RANDOM", b"RSA", b"Session-ID:", b"Master-Key:", b"CLIENT_TRAFFIC_SECRET_0"),
        *(b" ", b"\t", b"\n", b"\r\n", b"#", b"\0", b"x" * 600, b" " * 600),
        *(b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"),
        *(RANDOM.hex().encode(), MASTER.hex().upper().encode()),
        *(line().encode(), line().encode("utf-16-le")),
    ]
)
GARBAGE = st.lists(WORDS | st.binary(max_size=8), max_size=12).map(b"".join)


@given(GARBAGE, st.lists(st.integers(0, 2000), max_size=8))
@example(b" " * 2000 + b"x", [])
@example(b"\xff\xfe" + b"\0\xd8", [3])
def test_any_bytes_in_any_pieces_give_the_same(data: bytes, cuts: list[int]) -> None:
    whole = read(data)
    log = KeyLog()
    at = 0
    for end in [*sorted(cuts), len(data)]:
        log.add(data[at:end])
        at = max(at, end)
    log.finish()
    assert facts(log) == facts(whole)
    log.add(b"\n" + line().encode())
    assert log.secrets(RANDOM)


def test_a_line_without_end_takes_no_memory() -> None:
    log = KeyLog()
    tracemalloc.start()
    for _ in range(2000):
        log.add(bytes(1 << 14))
    assert tracemalloc.get_traced_memory()[0] < 1 << 20
    tracemalloc.stop()


FILLED = """
import random
from kafkascope.captures.tls.keys.keylog import KeyLog, log_line

def memory(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

log, source = KeyLog(), random.Random(1)
before = memory("VmRSS")
for _ in range(2_200_000):
    log.add(log_line(b"CLIENT_RANDOM", source.randbytes(32), source.randbytes(48)))
print(memory("VmHWM") - before, log.limited)
"""


@pytest.mark.soak
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_lines_without_end_take_less_than_250_mb() -> None:
    """Each of a connection of its own: the most memory that lines can take."""
    run = subprocess.run([sys.executable, "-c", FILLED], capture_output=True, check=True)
    taken, limited = run.stdout.split()
    assert int(taken) < 250_000_000
    assert limited == b"True"
