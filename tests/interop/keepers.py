"""A server of ZooKeeper alone."""

import base64
import hashlib
import shutil
import socket
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.interop.brokers import free_ports
from tests.interop.maven import KEEPERS, classpath, jars
from tests.interop.processes import ready

JAAS = """Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required user_alice="alice-secret";
};
Client {
  org.apache.zookeeper.server.auth.DigestLoginModule required
  username="alice" password="alice-secret";
};
"""


class Keeper:
    """A server of ZooKeeper of a release on a port of its own; a context manager.

    It takes SASL, the super user `super:keeper-secret`, and what the release can be told to take.
    """

    def __init__(self, version: str) -> None:
        self.version = version
        (self.port,) = free_ports(1)
        self.home = Path(tempfile.mkdtemp(prefix="keeper-"))
        self.jaas = self.home / "jaas.conf"
        self.members = ""
        """The servers of its ensemble, where it has one."""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.jaas.write_text(JAAS)
        settings = {
            "dataDir": str(self.home / "data"),
            "clientPort": str(self.port),
            "clientPortAddress": "127.0.0.1",
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        }
        if self.version >= "3.9":
            # Reconfiguration wants a quorum, be it of one.
            quorum, election = free_ports(2)
            self.members = (
                f"server.1=127.0.0.1:{quorum}:{election}:participant;127.0.0.1:{self.port}"
            )
            dynamic = self.home / "members"
            dynamic.write_text(f"{self.members}\n")
            settings |= {
                "reconfigEnabled": "true",
                "standaloneEnabled": "false",
                "tickTime": "1000",
                "initLimit": "5",
                "syncLimit": "5",
                "dynamicConfigFile": str(dynamic),
            }
            del settings["clientPort"], settings["clientPortAddress"]
        (self.home / "data").mkdir()
        (self.home / "data" / "myid").write_text("1")
        lines = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.home / "zoo.cfg").write_text(lines)
        self.start()
        return self

    def start(self) -> None:
        """Start the server and wait until it answers."""
        digest = base64.b64encode(hashlib.sha1(b"super:keeper-secret").digest()).decode()
        command = [
            *("java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            f"-Djava.security.auth.login.config={self.jaas}",
            f"-Dzookeeper.DigestAuthenticationProvider.superDigest=super:{digest}",
            "-Dzookeeper.extendedTypesEnabled=true",
            *("-cp", classpath(jars(f"zookeeper-{self.version}", KEEPERS[self.version]))),
            *("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(self.home / "zoo.cfg")),
        ]
        log = self.home / "log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.home
            )
        ready(
            self._process,
            log,
            lambda: serves(self.port),
        )

    def stop(self) -> None:
        """Stop the server."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)

    def __exit__(self, *failure: object) -> None:
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)


def serves(port: int) -> bool:
    """Whether a server of ZooKeeper takes requests: it listens before that."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(b"srvr")
        return b"Mode: " in b"".join(iter(lambda: connection.recv(4096), b""))
    return False
