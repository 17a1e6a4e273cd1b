"""Handshakes of OpenSSL's, both ends in memory."""

import ssl
from pathlib import Path

from tests.kit.authority import Authority

CLIENT, BROKER = 0, 1


Bytes = list[tuple[int, bytes]]


def talk(
    client: ssl.SSLContext, server: ssl.SSLContext, *, work: bool = True, session: object = None
) -> Bytes:
    """What both ends send: (direction, bytes) in turns."""
    c_in, c_out, s_in, s_out = (ssl.MemoryBIO() for _ in range(4))
    one = client.wrap_bio(c_in, c_out, server_hostname="127.0.0.1", session=session)  # type: ignore[arg-type]
    two = server.wrap_bio(s_in, s_out, server_side=True)
    steps = [one.do_handshake, two.do_handshake]
    if work:
        steps += [lambda: one.write(b"a" * 100), lambda: two.read(200)]
        steps += [lambda: two.write(b"b" * 100), lambda: one.read(200)]
    told: Bytes = []
    for step in [one.do_handshake, two.do_handshake] * 4 + steps:
        try:
            step()
        except (ssl.SSLWantReadError, ssl.SSLError):
            pass
        for direction, source, target in ((CLIENT, c_out, s_in), (BROKER, s_out, c_in)):
            data = source.read()
            if data:
                told.append((direction, data))
                target.write(data)
    return told


def contexts(broker: Path, authority: Authority | None) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    client, server = (
        ssl.SSLContext(each) for each in (ssl.PROTOCOL_TLS_CLIENT, ssl.PROTOCOL_TLS_SERVER)
    )
    server.load_cert_chain(broker)
    if authority is not None:
        client.load_verify_locations(authority.certificate)
    return client, server
