"""Make `zookeeper-trouble`: a real ZooKeeper and hand-made requests, captured on loopback.

    python -m tests.interop.make_zookeeper JARS OUT.pcapng

JARS is a folder with the jars of a broker that comes with ZooKeeper 3.5 (Kafka 2.8.2). Two sessions
register one broker; the server stands still for 1.4 s; nodes of nearly 1 MB, and one beyond
jute.maxbuffer; a type that the server does not know, with a request behind it. A stub in the place
of the broker tells another address than that which is registered.
"""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.analyzer.statistics.cluster.test_cluster import metadata
from tests.analyzer.wire import framed, request, response
from tests.analyzer.zookeeper_wire import ACL, text

PORT = 21811
STUB = 9292
BROKER = (
    b'{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":'
    b'["PLAINTEXT://127.0.0.1:%d"],"jmx_port":-1,"host":"127.0.0.1","port":%d,"version":4}'
)


class Client:
    """A session over a plain socket."""

    def __init__(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", PORT))
        self.socket.settimeout(10)
        self.xid = 0
        head = struct.pack(">iqiq", 0, 0, 4000, 0)
        self.socket.sendall(framed(head + struct.pack(">i16s", 16, bytes(16)) + b"\0"))
        self.read()

    def read(self) -> bytes:
        """The next frame; empty where the server closed."""
        head = self._get(4)
        return self._get(struct.unpack(">i", head)[0]) if len(head) == 4 else b""

    def _get(self, size: int) -> bytes:
        out = b""
        while len(out) < size:
            try:
                data = self.socket.recv(size - len(out))
            except ConnectionError:
                return out
            if not data:
                return out
            out += data
        return out

    def request(self, kind: int, body: bytes) -> bytes:
        self.xid += 1
        return framed(struct.pack(">ii", self.xid, kind) + body)

    def ask(self, kind: int, body: bytes) -> bytes:
        self.socket.sendall(self.request(kind, body))
        return self.read()

    def create(self, path: str, data: bytes = b"", flags: int = 0) -> bytes:
        return self.ask(1, text(path) + text(data) + ACL + struct.pack(">i", flags))

    def set(self, path: str, data: bytes) -> bytes:
        return self.ask(5, text(path) + text(data) + struct.pack(">i", -1))


def _told() -> None:
    """A Metadata exchange with a stub."""
    with socket.create_server(("127.0.0.1", STUB)) as listening:

        def answer() -> None:
            serving, _ = listening.accept()
            with serving:
                serving.recv(1 << 16)
                serving.sendall(response("Metadata", 8, 1, **metadata((1, "127.0.0.1", STUB))))
                serving.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        with socket.create_connection(("127.0.0.1", STUB)) as client:
            client.sendall(request("Metadata", 8, 1, "orders"))
            client.recv(1 << 16)
        thread.join()


def _trouble(server: subprocess.Popen[bytes]) -> None:
    one = Client()
    for path in ("/brokers", "/brokers/ids", "/big"):
        one.create(path)
    one.create("/brokers/ids/1", BROKER % (9092, 9092), 1)
    two = Client()
    two.create("/brokers/ids/1", BROKER % (9192, 9192), 1)
    server.send_signal(signal.SIGSTOP)
    one.socket.sendall(one.request(3, text("/brokers/ids/1") + b"\0"))
    time.sleep(1.4)
    server.send_signal(signal.SIGCONT)
    one.read()
    one.set("/big", b"x" * 950_000)
    two.ask(4, text("/big") + b"\0")
    one.set("/big", b"y" * 1_100_000)  # the server closes
    three = Client()
    three.create("/big/a", b"1")
    three.socket.sendall(three.request(107, b"") + three.request(4, text("/big/a") + b"\0"))
    while three.read():
        pass
    two.ask(-11, b"")
    _told()


def main(jars: str, out: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        config = Path(home) / "zk.properties"
        config.write_text(
            f"dataDir={home}/data\nclientPort={PORT}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\ntickTime=1000\n"
        )
        kind = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        command = ["java", "-Xmx200m", "-cp", f"{jars}/*", kind, str(config)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            for _ in range(200):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", PORT)) == 0:
                        break
                time.sleep(0.1)
            wanted = f"tcp port {PORT} or tcp port {STUB}"
            packets = ("capture", "-i", "lo", "-f", wanted, "-w", out, "--quiet")
            capture = subprocess.Popen([sys.executable, "-m", "kafkascope", *packets])
            time.sleep(3)
            _trouble(server)
            time.sleep(1)
            capture.send_signal(signal.SIGINT)
            capture.wait(20)
        finally:
            server.terminate()
            server.wait(20)


if __name__ == "__main__":
    main(*sys.argv[1:])
