"""Makes captures of Kafka over TLS with key logs and truth: `python -m tests.interop.make_tls`.

    python -m tests.interop.make_tls [--to FOLDER] [NAME...]

Without a folder the few that are kept with the project go to `tests/analyzer/captures/tls`. What
happens in each is its line in `tls_cases.py`; needs Java, Maven, Go, Node, tshark and the right to
run tcpdump.
"""

import argparse
import gzip
import json
import shutil
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from tests.interop.tls_cases import CASES, SPECIAL, Made, Maker
from tests.kit.samples import ROOT

TARGET = ROOT / "tests" / "analyzer" / "captures" / "tls"
KEPT = (
    *("tls13-dsb", "tls13-psk", "tls13-missing-key", "tls12-loss", "tls13-midstream"),
    *("tls13-mutual", "tls13-keyupdate-client", "tls13-https", "tls13-early-data"),
    *("tls12-session-ids", "tls12-tickets", "tls12-cbc-sha256-etm", "tls12-rsa-cbc"),
    *("tls12-renegotiation-cbc", "failed13-expired", "failed13-no-certificate"),
    *("failed12-issuer", "failed12-expired", "failed13-name", "failed-version", "failed-suite"),
)
LIMIT_BYTES = 80_000


def keep(made: Made, target: Path, packed: bool) -> None:
    """Write capture, key log and truth."""
    data, name = made.capture.read_bytes(), made.capture.name
    if len(data) > LIMIT_BYTES:
        raise RuntimeError(f"{name} has {len(data)} bytes, more than {LIMIT_BYTES}")
    if packed:
        data, name = gzip.compress(data, 9, mtime=0), f"{name}.gz"
        made.truth["capture"] = name
    (target / name).write_bytes(data)
    shutil.copy(made.keys, target)
    lines = [
        f" {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in made.truth.items()
    ]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (target / f"{name.partition('.')[0]}.truth.json").write_text(text)
    told = made.truth["tls"]
    print(
        f"{name}: {len(data)} bytes, {told['connections']} connections,"
        f" {made.truth['tshark']['connections_decrypted']} decrypted,"
        f" {' '.join(told['versions'] + told['cipher_suites'])},"
        f" resumed {told['resumed_connections']}, retries {told['hello_retry_requests']},"
        f" EtM {told['encrypt_then_mac_connections']}, key updates {told['key_updates']},"
        f" renegotiations {told['renegotiations']}",
        flush=True,
    )


def readme() -> str:
    """Where the kept captures come from, as a table."""
    lines = [
        "# Kafka over TLS, with key logs",
        "",
        "Real brokers (Kafka 4.4.0) and real clients on loopback, captured with tcpdump by",
        "`python -m tests.interop.make_tls`; `tests/interop/tls_cases.py` says what happens in",
        "each. `NAME.keys` is the key log as the program in the table wrote it; where it is inside",
        "the capture, it stands beside it all the same. `NAME.truth.json` has each connection as",
        "tshark sees it with these keys (handshake, plaintext by length and SHA-256, requests of",
        "Kafka in it) and the records that clients say they wrote and read. `failed` is why no",
        "handshake is completed. Users and passwords are made up; all addresses are 127.0.0.1.",
        "",
        "| file | kB | client | key log by | connections | what |",
        "|---|---|---|---|---|---|",
    ]
    for path in sorted(TARGET.glob("*.truth.json")):
        told = json.loads(path.read_text())
        size = round((TARGET / told["capture"]).stat().st_size / 1000)
        tls = told["tls"]
        words = ", ".join(tls["versions"] + tls["cipher_suites"])
        what = "; ".join(filter(None, (told["what"], words)))
        lines.append(
            f"| {told['capture']} | {size} | {told['client']} | {told['key_log']}"
            f" | {tls['connections']} | {what} |"
        )
    return "\n".join([*lines, ""])


def main(names: Sequence[str], target: Path) -> int:
    """Make the named ones."""
    target.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with tempfile.TemporaryDirectory() as home, Maker(Path(home)) as maker:
        for name in names:
            try:
                keep(maker.of(name), target, packed=target == TARGET)
            except Exception:
                wrong += 1
                print(f"{name} failed:", file=sys.stderr)
                traceback.print_exc()
    if target == TARGET:
        (TARGET / "README.md").write_text(readme())
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", type=Path, default=None)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    everything = (*CASES, *SPECIAL)
    sys.exit(main(asked.names or (everything if asked.to else KEPT), asked.to or TARGET) > 0)
