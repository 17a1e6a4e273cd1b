"""`kafkascope proxy --open`: the proxy as a child process, the terminal UI on its control socket.

Two processes: the screen must not take the traffic's time, and neither may crash the other.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.terminal import say
from kafkascope.captures.inputs.private import PrivateFile
from kafkascope.proxy.control.control import socket_path

if TYPE_CHECKING:
    from kafkascope.analyzer.reading.options import SchemaOptions
    from kafkascope.proxy.options import ProxyOptions

AFTER_S: Final = 10.0
"""Beyond `--grace`, for the end of the proxy."""


def run(options: ProxyOptions, hook: Callable[[Path, SchemaOptions, str], int]) -> int:
    """Start the proxy, show it until the user leaves, stop it; the exit code. `hook` shows it, with
    schemas as for the proxy and the filter of `-Y`."""
    ready, tell = os.pipe()
    with tempfile.TemporaryFile("w+") as said:
        command = [
            sys.executable,
            "-m",
            "kafkascope.proxy.cli",
            *options.arguments,
            "--quiet",
            "--until-eof",
        ]
        command += ["--ready-file", f"/dev/fd/{tell}"]
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            pass_fds=(tell,),
            start_new_session=True,  # ctrl+c is for the screen
        )
        try:
            os.close(tell)
            with os.fdopen(ready) as pipe:
                bootstrap = pipe.readline()
            if not bootstrap:
                return child.wait()
            if options.ready_file is not None:
                with PrivateFile(options.ready_file, shared=True) as file:
                    file.write(bootstrap.encode())
            path = Path(options.control) if options.control else socket_path(child.pid)
            return hook(path, options.schemas, options.filter)
        finally:
            _end(child, options.grace_s)
            said.seek(0)
            for line in said.read().splitlines():
                say(line, bare=True)


def _end(child: subprocess.Popen[bytes], grace_s: float) -> None:
    assert child.stdin is not None
    child.stdin.close()
    try:
        child.wait(grace_s + AFTER_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
