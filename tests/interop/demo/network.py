"""Addresses of its own for each program: network namespaces behind a bridge.

This process moves into the namespace of the brokers, so whatever it starts listens there and no
other traffic of the machine is near. Clients are started in namespaces with one address each; what
goes to addresses that nobody has leaves for the bridge and is never answered.
"""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["BRIDGE", "network"]

BRIDGE = "br0"
HOME = "kafkascope-demo"
NEW_NETWORK = 0x40000000
GATEWAY = "10.0.0.254"


@contextmanager
def network(brokers: tuple[str, ...], clients: dict[str, str]) -> Iterator[dict[str, list[str]]]:
    """Name of a client -> the words before its command. `clients`: name -> address."""
    made: list[str] = []
    before = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        _ip("netns", "add", HOME)
        made.append(HOME)
        _enter(f"/run/netns/{HOME}")
        _ip("link", "set", "lo", "up")
        _ip("link", "add", BRIDGE, "type", "bridge")
        # Off: what clients send to strange addresses has to get lost, not to be refused.
        for name in ("ip_forward", "conf/all/forwarding"):
            Path(f"/proc/sys/net/ipv4/{name}").write_text("0")
        for address in (*brokers, GATEWAY):
            _ip("address", "add", f"{address}/16", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        prefixes = {}
        for number, (name, address) in enumerate(clients.items(), 1):
            space = f"{HOME}-{number}"
            _ip("netns", "add", space)
            made.append(space)
            plug = ("type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("link", "add", f"veth{number}", *plug)
            _ip("link", "set", f"veth{number}", "master", BRIDGE, "up")
            for words in (
                ("link", "set", "lo", "up"),
                ("link", "set", "eth0", "up"),
                ("address", "add", f"{address}/16", "dev", "eth0"),
                ("route", "add", "default", "via", GATEWAY),
            ):
                _ip("-netns", space, *words)
            prefixes[name] = ["ip", "netns", "exec", space]
        yield prefixes
    finally:
        _setns(before)
        os.close(before)
        for space in reversed(made):
            _ip("netns", "delete", space)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def _enter(path: str) -> None:
    space = os.open(path, os.O_RDONLY)
    _setns(space)
    os.close(space)


def _setns(space: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(space, NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "setns")
