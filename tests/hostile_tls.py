"""Failed and unread TLS whose every name holds what a terminal or a spreadsheet would obey."""

from pathlib import Path

from tests.captures.tls import writer
from tests.captures.tls.writer import CLIENT, SERVER, Talk
from tests.explosion.encrypted import Talked, certificate, records_of, write_encrypted
from tests.explosion.tls import random_of
from tests.hostile import EVIL


def write_hostile_tls(path: Path, evil: str = EVIL, before: str = "=") -> Path:
    """Write a capture of handshakes with names for a server, protocols and certificates, one of
    which goes on."""
    from cryptography import x509

    name = f"{before}n{evil}"
    rdns = [
        x509.NameAttribute(oid, name)
        for oid in (x509.NameOID.COMMON_NAME, x509.NameOID.ORGANIZATION_NAME)
    ]
    der = certificate(x509.Name(rdns))
    plain = name.encode("ascii", "ignore")  # another name of a server is none
    server = writer.extension(0, writer.vector(2, b"\0" + writer.vector(2, plain)))
    protocol = writer.vector(1, name.encode())
    asked = server + writer.extension(16, writer.vector(2, protocol))
    talk = Talk(0xC02F)
    answer = talk.pairs()[1][1]
    answered = answer[5 : 5 + 4 + int.from_bytes(answer[6:9], "big")]
    made = []
    for number in range(3):
        body = b"\3\3" + random_of(number) + b"\0\0\2\xc0\x2f\1\0" + writer.vector(2, asked)
        shown = writer.message(11, writer.vector(3, writer.vector(3, der)))
        end = [b"\x15\3\3\0\2\2\x2a", b"\x15\3\3\0\2\2\x2d", b"\x17\3\3\0\x20" + bytes(32)][number]
        turns = [(CLIENT, data) for _, data in records_of(CLIENT, writer.message(1, body))]
        turns += [(SERVER, data) for _, data in records_of(SERVER, answered + shown)]
        made.append(Talked([*turns, (CLIENT, end)], closed=True))
    write_encrypted(path, made)
    return path
