"""Ends TLS in front of a plain listener, with the versions, suites and habits that are asked for.

    OPENSSL_CONF=FILE python -m tests.interop.tls_forwarder '{"listen": 9099, "target": 9098, ...}'

A process of its own, for OpenSSL reads its configuration once: there stand the suites of TLS 1.3,
groups and padding, which Python has no functions for. It runs until it gets a signal.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from OpenSSL import SSL

from tests.interop.brokers import free_ports
from tests.interop.processes import run
from tests.kit.samples import ROOT

PIECE = 16_384


@dataclass(frozen=True, slots=True)
class Front:
    """How a forwarder speaks TLS."""

    ciphers: str = "ALL:@SECLEVEL=0"
    """Suites up to TLS 1.2, as OpenSSL lists them."""
    openssl: Mapping[str, str] = field(default_factory=dict)
    """Commands of SSL_CONF, `MaxProtocol`, `Groups`, `RecordPadding`."""
    tickets: bool = True
    renegotiate_after: int = 0
    """Bytes to the client after which it has to shake hands again; 0: never."""
    diffie_hellman: bool = False


def configuration(path: Path, commands: Mapping[str, str]) -> Path:
    """Write commands of SSL_CONF as a file for OPENSSL_CONF."""
    lines = "\n".join(f"{name} = {value}" for name, value in commands.items())
    path.write_text(
        "openssl_conf = init\n[init]\nssl_conf = modules\n[modules]\n"
        f"system_default = ours\n[ours]\n{lines}\n"
    )
    return path


class Forwarder:
    """A running forwarder to `target`; a context manager. `keys` is the key log it writes."""

    def __init__(
        self, front: Front, certificate: Path, target: int, folder: Path, listen: int | None = None
    ) -> None:
        self.port = listen or free_ports(1)[0]
        self.keys = folder / "forwarder.keys"
        self._folder = folder
        self._told: dict[str, Any] = {
            "listen": self.port,
            "target": target,
            "certificate": str(certificate),
            "keys": str(self.keys),
            "ciphers": front.ciphers,
            "tickets": front.tickets,
            "renegotiate_after": front.renegotiate_after,
        }
        if front.diffie_hellman:
            self._told["diffie_hellman"] = str(self._parameters())
        self._configuration = configuration(folder / "openssl.cnf", front.openssl)

    def _parameters(self) -> Path:
        path = self._folder / "dh.pem"
        group = ("-algorithm", "DH", "-pkeyopt", "group:ffdhe2048")
        run("openssl", "genpkey", "-genparam", *group, "-out", path)
        return path

    def __enter__(self) -> Forwarder:
        self.keys.touch(0o600)
        self._log = (self._folder / "forwarder.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.interop.tls_forwarder", json.dumps(self._told)],
            cwd=ROOT,
            env=os.environ | {"OPENSSL_CONF": str(self._configuration)},
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            said = (self._folder / "forwarder.log").read_text(errors="replace")
            raise RuntimeError(f"the forwarder ended: {said[-2000:]}")
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.terminate()
        self._process.wait(20)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()


class _Connection:
    """One client: TLS on its side, a plain connection on the other."""

    def __init__(
        self, tls: SSL.Connection, writer: asyncio.StreamWriter, upstream: asyncio.StreamWriter
    ) -> None:
        self.tls = tls
        self.writer = writer
        self.upstream = upstream
        self.unsent = bytearray()
        self.sent = 0

    async def from_client(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(65_536):
            self.tls.bio_write(data)
            try:
                while True:
                    self.upstream.write(self.tls.recv(PIECE))
            except SSL.WantReadError:
                self.push()
            except (SSL.ZeroReturnError, SSL.Error) as end:
                print(f"{time.time():.3f} {end!r}", file=sys.stderr, flush=True)
                self.flush()  # an alert
                return
            self.flush()
            await self.upstream.drain()

    async def to_client(self, reader: asyncio.StreamReader, renegotiate_after: int) -> None:
        while data := await reader.read(65_536):
            self.unsent += data
            self.push()
            if renegotiate_after and self.sent > renegotiate_after:
                self.sent = 0
                self.tls.renegotiate()
                with suppress(SSL.WantReadError):
                    self.tls.do_handshake()
            self.flush()
            await self.writer.drain()
        with suppress(SSL.Error):
            self.tls.shutdown()
        self.flush()

    def push(self) -> None:
        """Encrypt what waits; while a handshake is under way nothing can be.

        OpenSSL would still write between its HelloRequest and the client's answer. Clients of Go
        that have already begun the handshake end on such a record ("unexpected message").
        """
        if self.tls.renegotiate_pending():
            return
        with suppress(SSL.WantReadError):
            while self.unsent:
                count = self.tls.send(bytes(self.unsent[:PIECE]))
                del self.unsent[:count]
                self.sent += count

    def flush(self) -> None:
        with suppress(SSL.WantReadError):
            while True:
                self.writer.write(self.tls.bio_read(65_536))


def _context(told: dict[str, Any]) -> SSL.Context:
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_cipher_list(told["ciphers"].encode())
    context.use_certificate_chain_file(told["certificate"])
    context.use_privatekey_file(told["certificate"])
    if not told["tickets"]:
        context.set_options(SSL.OP_NO_TICKET)
    if told.get("diffie_hellman"):
        context.load_tmp_dh(told["diffie_hellman"])
    keys = Path(told["keys"]).open("ab", buffering=0)  # noqa: SIM115 - until the process ends
    context.set_keylog_callback(lambda connection, line: keys.write(line + b"\n"))
    return context


async def _main(told: dict[str, Any]) -> None:
    context = _context(told)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        their_reader, upstream = await asyncio.open_connection("127.0.0.1", told["target"])
        tls = SSL.Connection(context, None)
        tls.set_accept_state()
        connection = _Connection(tls, writer, upstream)
        ways = [
            asyncio.ensure_future(connection.from_client(reader)),
            asyncio.ensure_future(connection.to_client(their_reader, told["renegotiate_after"])),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for each in (writer, upstream):
            with suppress(OSError):
                each.close()
                await each.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", told["listen"])
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    asyncio.run(_main(json.loads(sys.argv[1])))
