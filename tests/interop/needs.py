"""What the interop tests cannot do without, and what happens when it is absent."""

import os
import shutil
import subprocess
from typing import NoReturn

import pytest

CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def need(*tools: str) -> None:
    """When a program is absent: skip the test on a user's machine, fail it in CI."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        absent(f"needs {', '.join(missing)} on the PATH")


def need_namespaces() -> None:
    """When network namespaces and links between them cannot be made: skip or fail, as above."""
    need("ip")
    name = f"kafkascope-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if made.returncode:
        absent(f"needs root and network namespaces: {made.stderr.strip()}")
    words = ("link", "add", "one", "type", "veth", "peer", "name", "other")
    link = subprocess.run(["ip", "-netns", name, *words], capture_output=True, text=True)
    subprocess.run(["ip", "netns", "delete", name], check=True)
    if link.returncode:
        absent(f"needs veth links: {link.stderr.strip()}")


def absent(reason: str) -> NoReturn:
    """Skip the test on a user's machine, fail it in CI."""
    if CI:
        pytest.fail(reason)
    pytest.skip(reason)
