"""What tshark says of encrypted traffic: handshakes, and the plaintext of each connection.

The truth beside our encrypted captures is made of it, and of what the clients say they did.
"""

import hashlib
import re
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.interop.processes import run

RETRY = "cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c"
"""The random of every HelloRetryRequest."""
VERSIONS = {0x0301: "TLS 1.0", 0x0302: "TLS 1.1", 0x0303: "TLS 1.2", 0x0304: "TLS 1.3"}
CLIENT_HELLO, SERVER_HELLO, TICKET, CERTIFICATE, ASKED, KEY_UPDATE = 1, 2, 4, 11, 13, 24
SESSION_TICKET, ENCRYPT_THEN_MAC, MASTER_SECRET, PRE_SHARED_KEY, EARLY = 35, 22, 23, 41, 42
FIELDS = {
    "stream": "tcp.stream",
    "source": "tcp.srcport",
    "target": "tcp.dstport",
    "syn": "tcp.flags.syn",
    "size": "tcp.len",
    "types": "tls.handshake.type",
    "randoms": "tls.handshake.random",
    "suites": "tls.handshake.ciphersuite",
    "version": "tls.handshake.version",
    "chosen": "tls.handshake.extensions.supported_version",
    "extensions": "tls.handshake.extension.type",
    "lengths": "tls.handshake.extension.len",
    "records": "tls.record.content_type",
    "opaque": "tls.record.opaque_type",
    "alerts": "tls.alert_message.desc",
    "session": "tls.handshake.session_id",
}

Object = dict[str, Any]


class Followed(NamedTuple):
    """The plaintext of one connection, by direction."""

    to_server: bytes
    to_client: bytes


@cache
def tool() -> str:
    """tshark's name and version."""
    found = re.match(r"TShark \(Wireshark\) ([\d.]*\d)", run("tshark", "--version"))
    assert found is not None
    return f"TShark {found[1]}"


def _tshark(capture: Path, keys: Path | None, ports: Iterable[int], *arguments: str) -> str:
    command = ["tshark", "-n", "-r", str(capture), "-o", "tcp.reassemble_out_of_order:TRUE"]
    if keys is not None:
        command += ["-o", f"tls.keylog_file:{keys}"]
    for port in ports:
        command += ["-d", f"tcp.port=={port},tls", "-d", f"tls.port=={port},kafka"]
    return run(*command, *arguments)


@cache
def suites() -> dict[int, str]:
    """Code -> name by IANA, of those that OpenSSL knows."""
    found = {}
    for line in run("openssl", "ciphers", "-V", "-stdname", "ALL:@SECLEVEL=0").splitlines():
        match = re.match(r"\s*0x(\w\w),0x(\w\w) - (\S+)", line)
        assert match is not None
        found[int(match[1] + match[2], 16)] = match[3]
    return found | {0x1304: "TLS_AES_128_CCM_SHA256", 0x1305: "TLS_AES_128_CCM_8_SHA256"}


def followed(
    capture: Path, keys: Path | None, ports: Sequence[int], streams: Iterable[int]
) -> dict[int, Followed]:
    """Stream number of tshark -> its plaintext, empty where tshark has none."""
    asked = [word for n in streams for word in ("-z", f"follow,tls,raw,{n}")]
    if not asked:
        return {}
    found: dict[int, Followed] = {}
    text = _tshark(capture, keys, ports, "-q", *asked)
    for part in re.split(r"(?m)^=+\nFollow: tls,raw\n", text)[1:]:
        number = re.search(r"tcp\.stream eq (\d+)", part)
        first = re.search(r"(?m)^Node 0: .*:(\d+)$", part)
        assert number is not None
        assert first is not None
        two: tuple[list[str], list[str]] = ([], [])
        for line in part.splitlines():
            data = line.strip()
            if data and re.fullmatch(r"[0-9a-f]+", data):
                two[line.startswith("\t")].append(data)
        sides = [bytes.fromhex("".join(side)) for side in two]
        if int(first[1]) in ports:
            sides.reverse()
        found[int(number[1])] = Followed(*sides)
    return found


def encrypted_premasters(capture: Path, ports: Sequence[int]) -> list[str]:
    """What clients sent in RSA key exchanges, in hexadecimal."""
    fields = ("-T", "fields", "-e", "tls.handshake.epms")
    found = _tshark(capture, None, ports, "-Y", "tls.handshake.epms", *fields)
    return [line.replace(":", "") for line in found.split()]


def connections(capture: Path, keys: Path | None, ports: Sequence[int]) -> list[Object]:
    """Each TCP connection: its handshake, and what is inside of it."""
    logged = _logged(keys)
    found: dict[int, Object] = {}
    fields = [word for name in FIELDS.values() for word in ("-e", name)]
    text = _tshark(capture, keys, ports, "-Y", "tcp", "-T", "fields", *fields)
    for line in text.splitlines():
        packet = dict(zip(FIELDS, line.split("\t"), strict=True))
        stream, source = int(packet["stream"]), int(packet["source"])
        client = int(packet["target"]) if source in ports else source
        server = source if source in ports else int(packet["target"])
        connection = found.setdefault(stream, _new(stream, client, server))
        connection["bytes"] += int(packet["size"] or 0)
        _take(connection, packet, source == client)
    # Some clients connect and think better of it.
    found = {stream: each for stream, each in found.items() if each.pop("bytes")}
    texts = followed(capture, keys, ports, found)
    for stream, connection in found.items():
        _close(connection, texts.get(stream, Followed(b"", b"")), logged)
    return list(found.values())


def _logged(keys: Path | None) -> set[str]:
    """The randoms that a key log has lines for."""
    if keys is None:
        return set()
    lines = [line.split() for line in keys.read_text().splitlines() if not line.startswith("#")]
    return {words[1].lower() for words in lines if len(words) == 3}


def _new(stream: int, client: int, server: int) -> Object:
    return {
        "stream": stream,
        "client_port": client,
        "server_port": server,
        "tcp_handshake_seen": False,
        "bytes": 0,
        "alerts": [],
        "application_data_records": 0,
        "certificates": 0,
        "ticket_offered": False,
    }


def _take(connection: Object, packet: dict[str, str], from_client: bool) -> None:
    """Take in one packet."""
    if packet["syn"] in ("1", "True"):
        connection["tcp_handshake_seen"] = True
    types = _numbers(packet["types"])
    kinds = Counter(types)
    extensions = _numbers(packet["extensions"])
    lengths = dict(zip(extensions, _numbers(packet["lengths"]), strict=False))
    if kinds[CLIENT_HELLO]:
        connection.setdefault("client_random", packet["randoms"].split(",")[0])
        connection["ticket_offered"] |= lengths.get(SESSION_TICKET, 0) > 0
        connection["hellos"] = connection.get("hellos", 0) + 1
        if EARLY in extensions:
            connection["early_data_offered"] = True
        if packet["session"]:
            connection.setdefault("session_offered", packet["session"].split(",")[0])
    if kinds[SERVER_HELLO]:
        if packet["randoms"] == RETRY:
            connection["hello_retry_request"] = True
        elif "version" not in connection:
            said = int((packet["chosen"] or packet["version"]).split(",")[0], 16)
            connection["version"] = VERSIONS[said]
            connection["cipher_suite"] = suites()[int(packet["suites"].split(",")[0], 16)]
            connection["encrypt_then_mac"] = ENCRYPT_THEN_MAC in extensions
            connection["extended_master_secret"] = MASTER_SECRET in extensions
            connection["psk"] = PRE_SHARED_KEY in extensions
            connection["session_given"] = packet["session"].split(",")[0]
    connection["certificates"] += kinds[CERTIFICATE]
    for name, kind in (("client_certificate_asked", ASKED), ("key_updates", KEY_UPDATE)):
        if kinds[kind]:
            connection[name] = connection.get(name, 0) + kinds[kind]
    if kinds[TICKET]:
        connection["new_session_tickets"] = connection.get("new_session_tickets", 0) + 1
    side = "client" if from_client else "server"
    connection["alerts"] += [f"{side} {code}" for code in _numbers(packet["alerts"])]
    outer = _numbers(packet["opaque"]) or _numbers(packet["records"])
    connection["application_data_records"] += outer.count(23)


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each]


def _close(connection: Object, text: Followed, logged: set[str]) -> None:
    """Conclude what is known of a connection when all packets were seen."""
    psk, given = connection.pop("psk", False), connection.pop("session_given", "")
    offered, ticket = connection.pop("session_offered", ""), connection.pop("ticket_offered")
    certificates, hellos = connection.pop("certificates"), connection.pop("hellos", 0)
    if "version" in connection:
        new = connection["version"] == "TLS 1.3"
        connection["resumed"] = psk if new else not certificates
        if connection["resumed"]:
            by_ticket = "ticket" if ticket else "session id"
            connection["resumed_by"] = "psk" if new else by_ticket
            assert new or ticket or offered == given
        renegotiated = hellos - 1 - connection.get("hello_retry_request", False)
        if renegotiated > 0:
            connection["renegotiations"] = renegotiated
    both = {"client_to_server": text.to_server, "server_to_client": text.to_client}
    connection["decrypted"] = any(both.values())
    connection["app_bytes"] = {way: len(data) for way, data in both.items()}
    if connection["decrypted"]:
        connection["app_sha256"] = {
            way: hashlib.sha256(data).hexdigest() for way, data in both.items()
        }
        connection["kafka_frames"] = _kafka(text)
    if "client_random" in connection:
        connection["client_random_in_key_log"] = connection["client_random"] in logged


def _kafka(text: Followed) -> Object:
    """Requests and responses in a plaintext, counted; nothing where it is not Kafka's."""
    requests, left = _frames(text.to_server)
    responses, more = _frames(text.to_client)
    if requests is None or responses is None:
        return {"requests": 0, "responses": 0}
    heads = Counter("{} v{}".format(*struct.unpack_from(">hh", frame)) for frame in requests)
    told: Object = {"requests": len(requests), "responses": len(responses)}
    told["requests_by_api_key"] = dict(sorted(heads.items()))
    if left or more:
        told["bytes_after_last_whole_frame"] = left + more
    return told


def _frames(data: bytes) -> tuple[list[bytes] | None, int]:
    """Whole frames, and how many bytes follow them; None when sizes make no sense."""
    found, at = [], 0
    while at + 4 <= len(data):
        (size,) = struct.unpack_from(">i", data, at)
        if not 4 <= size < 1 << 24:
            return None, 0
        if at + 4 + size > len(data):
            break
        found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return found, len(data) - at


def summary(made: Sequence[Object]) -> Object:
    """Counts over all connections of a capture."""
    return {
        "connections": len(made),
        "versions": sorted({c["version"] for c in made if "version" in c}),
        "cipher_suites": sorted({c["cipher_suite"] for c in made if "cipher_suite" in c}),
        "resumed_connections": sum(bool(c.get("resumed")) for c in made),
        "hello_retry_requests": sum(bool(c.get("hello_retry_request")) for c in made),
        "encrypt_then_mac_connections": sum(bool(c.get("encrypt_then_mac")) for c in made),
        "key_updates": sum(c.get("key_updates", 0) for c in made),
        "renegotiations": sum(c.get("renegotiations", 0) for c in made),
        "client_certificates_asked": sum(c.get("client_certificate_asked", 0) for c in made),
    }
