"""Capture of loopback traffic with tcpdump while something runs."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["sniff"]

REST_SECONDS = 1.0  # for what is still on its way to tcpdump's buffer


@contextmanager
def sniff(path: Path, ports: Iterable[int], interface: str = "lo") -> Iterator[None]:
    """Write all packets from and to these ports to `path`; raises when the kernel dropped some."""
    condition = " or ".join(f"tcp port {port}" for port in ports)
    command = ["tcpdump", "-i", interface, "-U", "-B", "65536", "-w", str(path), condition]
    if os.geteuid() == 0:
        command[1:1] = ["-Z", "root"]  # else it gives up the right to write into our folder
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = ""
    while "listening on" not in said:
        line = process.stderr.readline()
        if not line:
            raise RuntimeError(f"tcpdump does not capture: {said}")
        said += line
    try:
        yield
        time.sleep(REST_SECONDS)
    finally:
        process.send_signal(signal.SIGINT)
        said += process.communicate(timeout=120)[1]
    dropped = re.search(r"(\d+) packets? dropped by kernel", said)
    if dropped and int(dropped[1]):
        raise RuntimeError(f"the capture is not whole: {dropped[0]}")
