"""Encrypted captures handed on: in plain, or as they are, with the secrets that open them."""

import gzip
import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.captures.formats.pcapng import SECRETS
from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.streams.streams import streams as events_of
from tests.analyzer.transform.cuts import messages_of, told
from tests.captures.tls.writer import Talk
from tests.kit import run as kit
from tests.kit.captures import capture_file
from tests.kit.samples import TLS, capture_of
from tests.kit.wire import beat, heartbeat, request, response
from tests.matrix import each_nth

NAMES = sorted(path.name.partition(".")[0] for path in TLS.glob("*.truth.json"))
READABLE = [name for name in NAMES if not name.startswith("failed") and name != "tls13-https"]
ALONE = (
    *("tls12-rsa-cbc", "tls12-session-ids", "tls12-tickets", "tls12-renegotiation-cbc"),
    *("tls13-early-data", "tls13-midstream", "tls13-psk"),
)
"""With secrets that are found in other ways than by a line of the connection's own."""
HARD = ("tls12-loss", "tls13-midstream")
"""tshark reads less of these."""
BROKER = 9093
PASSWORD = b"open sesame 17"


def truth_of(name: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((TLS / f"{name}.truth.json").read_text())
    return told


def keys_of(name: str) -> Path:
    return TLS / f"{name}.keys"


def run(*words: str | Path, code: int = 0) -> str:
    return kit.run("cut", *words, codes=(code,) if code else (0, 4)).output


Rows = list[tuple[int, bool, tuple[object, ...]]]


def rows_of(path: Path, *logs: Path) -> Rows:
    """Connection, whether it was decrypted, and what has to stay of a row."""
    with open_capture([path], keylog=logs) as capture:
        return [
            (each.connection.number, each.connection.decrypted, told(row_of(each, names)))
            for names in [capture.context.names]
            for each in capture.exchanges()
        ]


def stories(rows: Rows) -> list[tuple[object, ...]]:
    return sorted((row for *_, row in rows), key=str)


def secrets_in(path: Path) -> list[list[str]]:
    """The lines of the key log inside a capture, as words."""
    with open_inputs([path]) as source:
        list(events_of(source))
        lines = b"".join(block.data for block in source.secrets).decode().splitlines()
    return [line.split() for line in lines]


@pytest.mark.parametrize("name", READABLE)
def test_in_plain_the_exchanges_are_the_same(name: str, tmp_path: Path) -> None:
    target = tmp_path / "plain.pcapng"
    said = run(capture_of(name, TLS), "--keylog", keys_of(name), "--decrypt", "-o", target)
    before = rows_of(capture_of(name, TLS), keys_of(name))
    after = rows_of(target)
    whole = [row for row in before if row[1]]
    assert after
    if name == "tls12-loss":
        assert len(after) == len(whole)
    else:
        assert stories(after) == stories(whole)
    assert not any(decrypted for _, decrypted, _ in after)
    unread = name in ("tls13-midstream", "tls13-missing-key")
    assert ("1 connection left out: TLS that cannot be read" in said) == unread


@pytest.mark.parametrize("name", READABLE)
def test_with_its_secrets_a_capture_needs_no_key_log(name: str, tmp_path: Path) -> None:
    target = tmp_path / "sealed.pcapng"
    said = run(capture_of(name, TLS), "--keylog", keys_of(name), "--secrets", "-o", target)
    assert rows_of(target) == rows_of(capture_of(name, TLS), keys_of(name))
    assert (
        f"everyone with access to {target} can read all of it, including passwords inside TLS"
        in said
    )
    whole = capture_of(name, TLS).stat().st_size
    assert len(gzip.compress(target.read_bytes())) < whole + 4096
    kinds = ("EARLY_TRAFFIC_SECRET", "HANDSHAKE_TRAFFIC_SECRET", "TRAFFIC_SECRET_0")
    labels = {f"{end}_{kind}" for end in ("CLIENT", "SERVER") for kind in kinds}
    known = labels - {"SERVER_EARLY_TRAFFIC_SECRET"} | {"CLIENT_RANDOM"}
    assert {name for name, *_ in secrets_in(target)} <= known


@pytest.mark.parametrize("name", ALONE)
def test_a_connection_alone_has_the_secrets_that_it_needs_and_no_others(
    name: str, tmp_path: Path
) -> None:
    target = tmp_path / "one.pcapng"
    whole = rows_of(capture_of(name, TLS), keys_of(name))
    seen: set[tuple[str, ...]] = set()
    for number in sorted({number for number, decrypted, _ in whole if decrypted}):
        run(
            *(capture_of(name, TLS), "--keylog", keys_of(name), "--secrets"),
            *("-Y", f"conn == {number}", "-o", target),
        )
        alone = rows_of(target)
        assert [nameless(row) for _, _, row in alone] == [
            nameless(row) for each, _, row in whole if each == number
        ]
        assert {number for number, *_ in alone} == {0}
        lines = {(label, random) for label, random, _ in secrets_in(target)}
        assert lines
        assert not lines & seen
        seen |= lines


def nameless(row: tuple[object, ...]) -> tuple[object, ...]:
    """Without topics: which id is whose name another connection may have said."""
    return (*row[:10], *row[11:])


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("name", each_nth(sorted({*READABLE} - {*HARD}), 4))
def test_tshark_reads_both(name: str, tmp_path: Path) -> None:
    frames = sum(
        each["kafka_frames"]["requests"] + each["kafka_frames"]["responses"]
        for each in truth_of(name)["tls_connections"]
        if each["decrypted"]
    )
    for option in ("--decrypt", "--secrets"):
        target = tmp_path / f"{option[2:]}.pcapng"
        said = run(capture_of(name, TLS), "--keylog", keys_of(name), option, "-o", target)
        ports = said.partition("for Wireshark: ")[2].splitlines()[0].split()
        assert kafka_frames(target, ports) == frames


def kafka_frames(path: Path, options: list[str]) -> int:
    command = ["tshark", "-r", str(path), *options, "-o", "tcp.reassemble_out_of_order:TRUE"]
    command += ["-T", "fields", "-e", "kafka.len", "-Y", "kafka"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return sum(line.count(",") + 1 for line in done.stdout.splitlines())


def test_a_tls_connection_that_is_decrypted_wants_a_word(tmp_path: Path) -> None:
    target = tmp_path / "cut.pcapng"
    for name, log in (("tls13-psk", ["--keylog", keys_of("tls13-psk")]), ("tls13-dsb", [])):
        said = run(capture_of(name, TLS), *log, "-o", target, code=2)
        assert "--decrypt to write plaintext" in said
        assert "--secrets to write the encrypted packets" in said
        assert not target.exists()
    run(capture_of("tls13-dsb", TLS), "-Y", "conn == 99", "-o", target)


def test_words_that_do_not_go_together(tmp_path: Path) -> None:
    path, target = capture_of("tls13-dsb", TLS), tmp_path / "cut.pcapng"
    for word in ("--decrypt", "--anonymize", "--mss=500"):
        said = run(path, "--secrets", word, "-o", target, code=2)
        assert "--secrets" in said
        assert "Error:" in said
        assert not target.exists()


def encrypted(path: Path, talk: Talk) -> Path:
    """A capture of a connection with TLS; the key log stands beside it."""
    frames = [("broker" if each.direction else "client", each.data) for each in talk.sent]
    path.with_suffix(".keys").write_text(talk.keylog())
    return capture_file(path, frames, port=BROKER)


def logging_in() -> list[tuple[str, bytes]]:
    shake = {"mechanism": "PLAIN"}
    token = {"auth_bytes": b"\0alice\0" + PASSWORD}
    accepted: dict[str, Any] = {"error_code": 0, "mechanisms": ["PLAIN"]}
    done: dict[str, Any] = {"error_code": 0, "error_message": None, "auth_bytes": b""}
    return [
        ("client", request("SaslHandshake", 1, 1, **shake)),
        ("broker", response("SaslHandshake", 1, 1, **accepted)),
        ("client", request("SaslAuthenticate", 1, 2, **token)),
        ("broker", response("SaslAuthenticate", 1, 2, **done, session_lifetime_ms=0)),
        ("client", heartbeat(3)),
        ("broker", beat(3)),
    ]


def spoken(talk: Talk, frames: list[tuple[str, bytes]]) -> Talk:
    for side, data in frames:
        (talk.client if side == "client" else talk.server)(data)
    return talk


@pytest.mark.parametrize("suite", [0x1301, 0xC02F, 0xC013])
def test_in_plain_it_is_what_a_cut_of_plain_traffic_is(suite: int, tmp_path: Path) -> None:
    frames = logging_in()
    plain = capture_file(tmp_path / "plain.pcapng", frames, port=BROKER)
    sealed = encrypted(tmp_path / "tls.pcapng", spoken(Talk(suite), frames))
    one, other = tmp_path / "1.pcapng", tmp_path / "2.pcapng"
    run(plain, "-o", one)
    said = run(sealed, "--keylog", sealed.with_suffix(".keys"), "--decrypt", "-o", other)
    assert payloads(one) == payloads(other)
    assert PASSWORD not in other.read_bytes()
    assert "for Wireshark: -d tcp.port==9093,kafka" in said
    keylog = ("--keylog", sealed.with_suffix(".keys"))
    run(plain, "--anonymize", "-o", one)
    run(sealed, *keylog, "--decrypt", "--anonymize", "-o", other)
    assert payloads(one) == payloads(other)
    assert b"alice" not in other.read_bytes()
    run(sealed, *keylog, "--decrypt", "--mss", "64", "-Y", "api == Heartbeat", "-o", other)
    (kept,) = rows_of(other)
    assert kept[2][2] == 12


def payloads(path: Path) -> list[bytes]:
    return [message.frame.payload for message in messages_of(path)]


def test_only_part_of_a_connection_was_chosen(tmp_path: Path) -> None:
    path = encrypted(tmp_path / "tls.pcapng", spoken(Talk(), logging_in()))
    target = tmp_path / "one.pcapng"
    keylog = ("--keylog", path.with_suffix(".keys"))
    said = run(path, *keylog, "--secrets", "-Y", "api == Heartbeat", "-o", target)
    assert "1 connection with 3 exchanges written" in said
    assert "2 exchanges more than chosen: connections are written whole" in said
    assert "for Wireshark: -d tcp.port==9093,tls -d tls.port==9093,kafka" in said
    assert len(rows_of(target)) == 3
    said = run(path, *keylog, "--secrets", "-Y", "api == Fetch", "-o", target)
    assert "no secrets are in it" in said
    assert secrets_in(target) == []


def test_plain_connections_come_along(tmp_path: Path) -> None:
    frames = logging_in()
    sealed = encrypted(tmp_path / "tls.pcapng", spoken(Talk(), frames))
    plain = capture_file(tmp_path / "plain.pcapng", frames)
    target = tmp_path / "both.pcapng"
    words = (sealed, plain, "--keylog", sealed.with_suffix(".keys"))
    said = run(*words, "--secrets", "-o", target)
    assert "not encrypted, and written as captured: 1 connection" in said
    assert len(rows_of(target)) == 6
    said = run(*words, "--decrypt", "-o", target)
    assert len(rows_of(target)) == 6
    assert PASSWORD not in target.read_bytes()


def test_a_pipe_is_read_again_from_where_it_is_kept(tmp_path: Path) -> None:
    path = encrypted(tmp_path / "tls.pcapng", spoken(Talk(), logging_in()))
    target = tmp_path / "cut.pcapng"
    keylog = ("--keylog", path.with_suffix(".keys"))
    for option in ("--secrets", "--decrypt"):
        program = ["-c", "from kafkascope.tui.cli import main; main()"]
        done = subprocess.run(
            [sys.executable, *program, "cut", "-", *map(str, keylog), option, "-o", str(target)],
            input=path.read_bytes(),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert len(rows_of(target)) == 3


def test_what_holds_secrets_is_for_its_owner_only(tmp_path: Path) -> None:
    path = capture_of("tls13-dsb", TLS)
    target = tmp_path / "cut.pcapng"
    target.touch(0o644)
    target.chmod(0o644)
    for option in ("--secrets", "--decrypt"):
        run(path, option, "-o", target)
        assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_secrets_stand_before_the_packets(tmp_path: Path) -> None:
    target = tmp_path / "cut.pcapng"
    run(capture_of("tls13-dsb", TLS), "--secrets", "-o", target)
    data, kinds, at = target.read_bytes(), [], 0
    while at < len(data):
        kinds.append(int.from_bytes(data[at : at + 4], "little"))
        at += int.from_bytes(data[at + 4 : at + 8], "little")
    assert kinds[1] == SECRETS
    assert SECRETS not in kinds[2:]


def test_comments_stand_at_their_packets(tmp_path: Path) -> None:
    path = encrypted(tmp_path / "tls.pcapng", spoken(Talk(), logging_in()))
    target = tmp_path / "cut.pcapng"
    notes = {"schema": "notes/1", "exchanges": [{"id": "1" * 16, "number": 3, "comment": "odd"}]}
    (tmp_path / "tls.pcapng.kafkascope.json").write_text(json.dumps(notes))
    run(path, "--keylog", path.with_suffix(".keys"), "--secrets", "-o", target)
    assert target.read_bytes().count(b"odd\0") == 1


@pytest.mark.parametrize("option", ["--decrypt", ""])
def test_without_a_key_nothing_inside_is_written(option: str, tmp_path: Path) -> None:
    talk = spoken(Talk(sni="orders.internal.example"), logging_in())
    path, target = encrypted(tmp_path / "tls.pcapng", talk), tmp_path / "cut.pcapng"
    words = [option] if option else []
    said = run(path, *words, "-d", "tcp.port==9093,kafka", "-o", target)
    assert ("1 connection left out: TLS that cannot be read" in said) == bool(option)
    assert (b"orders.internal" in target.read_bytes()) != bool(option)
    run(path, *words, "--anonymize", "-d", "tcp.port==9093,kafka", "-o", target)
    assert b"orders" not in target.read_bytes()
    with open_capture([target], decode_as=[BROKER]) as capture:
        states = [each.state for each in capture.exchanges()]
    assert states == ([] if option else ["opaque"])
