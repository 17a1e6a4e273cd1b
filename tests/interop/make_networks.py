"""Scenarios of `make_findings` between machines: network namespaces, so that clients have addresses
of their own, links may be long or lossy, and nothing is at an address that nobody has. As root.
"""

import time
from collections.abc import Callable

from tests.interop import make_findings_kit as kit
from tests.interop.brokers import KRaftCluster
from tests.interop.demo.network import inside
from tests.interop.link import Link

OUTSIDE, PUBLIC = "192.88.99.30", "192.88.99.2"
"""Public as all of 192.88.99.0/24, which belongs to nobody since RFC 7526."""
BROKER, PRIVATE, CLIENT = "10.0.1.1", "10.0.1.2", "10.0.2.11"


def between(
    client: str,
    address: str = CLIENT,
    broker: str = BROKER,
    told: str = "",
    link: Link | None = None,
) -> Callable[[Callable[[], None]], kit.Scenario]:
    """Register what a client does on a machine of its own; `told`: what the broker advertises."""

    def register(function: Callable[[], None]) -> kit.Scenario:
        name = function.__name__.replace("_", "-")
        gateway = f"{broker.rpartition('.')[0]}.254"
        links = {client: link} if link else {}
        local = f"INTERNAL://127.0.0.1:{kit.PORT + 2},SASL_PLAINTEXT://127.0.0.1:{kit.SASL}"
        controller = f"CONTROLLER://127.0.0.1:{kit.PORT + 1}"
        settings = {
            "listeners": f"PLAINTEXT://0.0.0.0:{kit.PORT},{controller},{local}",
            "advertised.listeners": f"PLAINTEXT://{told or broker}:{kit.PORT},{local}",
        }
        here = kit.Network(((broker,), {client: address}, gateway, links), settings, {})
        kit.NETWORKS[name] = here

        def run(cluster: KRaftCluster) -> None:
            kit.topics("orders")
            with inside(here.spaces[client]):
                function()

        run.__name__, run.__doc__ = function.__name__, function.__doc__
        return kit.scenario(kit.PORT)(run)

    return register


@between("shop-app", OUTSIDE, PUBLIC, told=PRIVATE)
def private_address() -> None:
    """A client on the internet, a broker behind NAT that advertises its address inside."""
    out = kit.producer("shop-app", f"{PUBLIC}:{kit.PORT}", message_timeout_ms=15000)
    kit.write(out, "orders", b"never sent")


@between("till", told="[::]")
def no_address() -> None:
    """A broker whose advertised.listeners has the address on which it listens: it refuses to start
    with 0.0.0.0, and takes [::]."""
    out = kit.producer("till", f"{BROKER}:{kit.PORT}", message_timeout_ms=15000)
    kit.write(out, "orders", b"never sent")


@between("branch-office", link=Link(delay=0.04))
def far_network() -> None:
    """A client 80 ms away that writes and reads; nothing else is wrong."""
    out = kit.producer("branch-office", f"{BROKER}:{kit.PORT}")
    kit.write(out, "orders", *(b"order %d" % number for number in range(10)))
    client = kit.consumer("branch-office", "branches", f"{BROKER}:{kit.PORT}")
    client.subscribe(["orders"])
    kit.read(client, 10)
    client.commit(asynchronous=False)
    client.close()


@between("on-wifi", link=Link(delay=0.002, loss=0.08))
def lossy_network() -> None:
    """One of twelve packets gets lost on the way of a client that writes for ten seconds."""
    out = kit.producer("on-wifi", f"{BROKER}:{kit.PORT}", linger_ms=5)
    for number in range(500):
        out.produce("orders", b"order %d" % number)
        out.poll(0)
        time.sleep(0.02)
    out.flush(20)
