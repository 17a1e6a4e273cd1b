"""Make `zookeeper-trouble` and `zookeeper-groups`: real servers of ZooKeeper and hand-made
requests, captured on loopback.

    python -m tests.interop.make_zookeeper trouble OUT.pcap

ZooKeeper is 3.5, as it comes with Kafka 2.8.2. Trouble: two sessions register one broker; the
server stands still for 1.4 s; nodes of nearly 1 MB, and one beyond jute.maxbuffer; a type that the
server does not know, with a request behind it. A stub in the place of the broker tells another
address than that which is registered.

Groups: two servers, each an ensemble of its own with nodes of the same paths, and in both a group
`shop` of consumers as before 0.9. In the first one a member owns what is another one's, nobody owns
`orders-2`, and the second member claims in vain; in the second one all is as it should be.
"""

import signal
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.interop.brokers import Node
from tests.interop.keepers import serves
from tests.interop.processes import until
from tests.interop.sniff import sniff
from tests.interop.zookeeper import ZooKeeperCluster
from tests.kit.wire import framed, metadata, request, response
from tests.kit.zookeeper import ACL, text

PORT = 21811
STUB = 9292
OTHER = 21812
BROKER = (
    b'{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":'
    b'["PLAINTEXT://127.0.0.1:%d"],"jmx_port":-1,"host":"127.0.0.1","port":%d,"version":4}'
)


class Client:
    """A session over a plain socket."""

    def __init__(self, port: int = PORT) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self._file = self.socket.makefile("rb")
        self.xid = 0
        head = struct.pack(">iqiq", 0, 0, 4000, 0)
        self.socket.sendall(framed(head + struct.pack(">i16s", 16, bytes(16)) + b"\0"))
        self.read()

    def read(self) -> bytes:
        """The next frame; empty where the server closed."""
        with suppress(ConnectionError):
            if head := self._file.read(4):
                return self._file.read(struct.unpack(">i", head)[0])
        return b""

    def request(self, kind: int, body: bytes) -> bytes:
        self.xid += 1
        return framed(struct.pack(">ii", self.xid, kind) + body)

    def ask(self, kind: int, body: bytes) -> bytes:
        self.socket.sendall(self.request(kind, body))
        return self.read()

    def create(self, path: str, data: bytes = b"", flags: int = 0) -> bytes:
        return self.ask(1, text(path) + text(data) + ACL + struct.pack(">i", flags))

    def ping(self) -> bytes:
        self.socket.sendall(framed(struct.pack(">ii", -2, 11)))
        return self.read()

    def close(self) -> None:
        self.ask(-11, b"")
        self.socket.close()

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


def _trouble(server: Node) -> None:
    assert server.process is not None
    one = Client()
    for path in ("/brokers", "/brokers/ids", "/big"):
        one.create(path)
    one.create("/brokers/ids/1", BROKER % (9092, 9092), 1)
    two = Client()
    two.create("/brokers/ids/1", BROKER % (9192, 9192), 1)
    server.process.send_signal(signal.SIGSTOP)
    one.socket.sendall(one.request(3, text("/brokers/ids/1") + b"\0"))
    time.sleep(1.4)
    server.process.send_signal(signal.SIGCONT)
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


def _groups() -> None:
    """A group of one name in two clusters."""
    consumer = b'{"version":1,"subscription":{"orders":1},"pattern":"static","timestamp":"1"}'
    topic = b'{"version":1,"partitions":{"0":[1],"1":[1],"2":[1]}}'
    for port, partitions in ((PORT, 1), (OTHER, 3)):
        admin = Client(port)
        for path in ("", "/ids", "/owners", "/owners/orders", "/offsets", "/offsets/orders"):
            above = ("/consumers", "/consumers/shop") if not path else (f"/consumers/shop{path}",)
            for each in above:
                admin.create(each)
        for path in ("/brokers", "/brokers/topics"):
            admin.create(path)
        admin.create("/brokers/topics/orders", topic)
        admin.ask(4, text("/brokers/topics/orders") + b"\0")
        one = Client(port)
        one.create("/consumers/shop/ids/shop_a", consumer, 1)
        for number in range(partitions):
            one.create(f"/consumers/shop/owners/orders/{number}", b"shop_a-0", 1)
            one.create(f"/consumers/shop/offsets/orders/{number}", b"%d" % port)
        sessions = [admin, one]
        if port == PORT:
            # By range: 0 and 1 of shop_a, 2 of shop_b.
            two = Client(port)
            one.ask(2, text("/consumers/shop/owners/orders/0") + struct.pack(">i", -1))
            one.create("/consumers/shop/owners/orders/1", b"shop_a-0", 1)
            two.create("/consumers/shop/ids/shop_b", consumer, 1)
            two.create("/consumers/shop/owners/orders/0", b"shop_b-0", 1)
            for _ in range(4):
                two.create("/consumers/shop/owners/orders/1", b"shop_b-0", 1)
                time.sleep(0.1)
            sessions.append(two)
        for _ in range(12):
            for each in sessions:
                each.ping()
            time.sleep(1)
        for each in sessions[::-1]:
            each.close()


def main(what: str, out: str) -> None:
    ports = (PORT, STUB) if what == "trouble" else (PORT, OTHER)
    cluster = ZooKeeperCluster("2.8.2")
    servers = [cluster.zookeeper(port) for port in (ports if what == "groups" else ports[:1])]
    try:
        for server in servers:
            until(partial(serves, server.ports["CLIENT"]))
        with sniff(Path(out), ports):
            _groups() if what == "groups" else _trouble(servers[0])
    finally:
        for server in servers:
            server.stop()
        cluster.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
