"""The public names, and what importing them must not load."""

from __future__ import annotations

import subprocess
import sys

from kafkascope import captures
from tests.kit.samples import ROOT


def test_every_public_name_is_there() -> None:
    assert sorted(captures.__all__) == list(captures.__all__)
    assert all(hasattr(captures, name) for name in captures.__all__)


def test_importing_loads_neither_scapy_nor_numpy() -> None:
    program = "import kafkascope.captures, sys\n"
    program += "print(sorted({'scapy', 'numpy'} & set(sys.modules)))"
    root = ROOT
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root
    )
    assert run.stdout.strip() == "[]"
