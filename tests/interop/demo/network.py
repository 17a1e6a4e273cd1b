"""Addresses of its own for each program: network namespaces behind a bridge.

This process moves into the namespace of the brokers, so whatever it starts listens there and no
other traffic of the machine is near. Clients are started in namespaces with one address each; what
goes to addresses that nobody has leaves for the bridge and is never answered.
"""

import ctypes
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.interop.link import Link, joined, whole_frames

BRIDGE = "br0"
HOME = "kafkascope-demo"
NEW_NETWORK = 0x40000000
GATEWAY = "10.0.0.254"


@contextmanager
def network(
    brokers: tuple[str, ...],
    clients: Mapping[str, str],
    gateway: str = GATEWAY,
    links: Mapping[str, Link] = {},
) -> Iterator[dict[str, list[str]]]:
    """Name of a client -> the words before its command. `clients`: name -> address. `links`: name
    of a client -> how poor its link is."""
    made: list[str] = []
    before = os.open("/proc/self/ns/net", os.O_RDONLY)
    carried = ExitStack()
    try:
        _ip("netns", "add", HOME)
        made.append(HOME)
        _enter(f"/run/netns/{HOME}")
        _ip("link", "set", "lo", "up")
        _ip("link", "add", BRIDGE, "type", "bridge")
        # Off: what clients send to strange addresses has to get lost, not to be refused.
        for name in ("ip_forward", "conf/all/forwarding"):
            Path(f"/proc/sys/net/ipv4/{name}").write_text("0")
        for address in (*brokers, gateway):
            _ip("address", "add", f"{address}/16", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        prefixes = {}
        for number, (name, address) in enumerate(clients.items(), 1):
            space = f"{HOME}-{number}"
            _ip("netns", "add", space)
            made.append(space)
            plug = ("type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("link", "add", f"veth{number}", *plug)
            _ip("link", "set", f"veth{number}", "up")
            if name in links:
                _ip("link", "add", f"far{number}", "up", "type", "veth", "peer", f"near{number}")
                carried.enter_context(joined(f"veth{number}", f"far{number}", links[name]))
            near = f"near{number}" if name in links else f"veth{number}"
            _ip("link", "set", near, "master", BRIDGE, "up")
            for words in (
                ("link", "set", "lo", "up"),
                ("link", "set", "eth0", "up"),
                ("address", "add", f"{address}/16", "dev", "eth0"),
                ("route", "add", "default", "via", gateway),
            ):
                _ip("-netns", space, *words)
            if name in links:
                whole_frames(BRIDGE)
                with inside(space):
                    whole_frames("eth0")
            prefixes[name] = ["ip", "netns", "exec", space]
        yield prefixes
    finally:
        carried.close()
        _setns(before)
        os.close(before)
        for space in reversed(made):
            _ip("netns", "delete", space)


@contextmanager
def inside(space: str) -> Iterator[None]:
    """This thread, and all that it starts, is in a namespace for a while."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _enter(f"/run/netns/{space}")
        yield
    finally:
        _setns(before)
        os.close(before)


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
