"""Which tests pytest-xdist keeps in one process: what shares a Spark session or running brokers.

Its own `--dist loadgroup` writes the group into a test's id, which newer pytest does not take. Here
the group follows from the id, and the scheduler asks for it.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

SHARES = {
    "test_mitmproxy": "clusters",
    "test_proxy": "clusters",
    "test_proxy_changes": "clusters",
    "test_proxy_faults": "clusters",
    "test_proxy_tls": "clusters",
    "test_clients": "brokers",
    "test_edits": "brokers",
    "test_pytest_plugin": "brokers",
    "test_schemas": "brokers",
    "test_terminal": "brokers",
}
"""Interop module -> the fixture of the session that it uses."""
NEWEST = "4.4.0"
NEIGHBOURS = 10
"""Tests without a group that go to a process together: they share what their module has made."""


def group(nodeid: str) -> str:
    """What this test shares with others, or nothing.

    >>> group("tests/interop/test_proxy.py::test_a_client[3.9.2-kafkajs]")
    'clusters 3.9.2'
    """
    path = PurePosixPath(nodeid.partition("::")[0])
    if "spark" in path.parts:
        return "spark"
    if "interop" not in path.parts:
        return ""
    shared = SHARES.get(path.stem, path.stem)
    if shared == "brokers":
        return shared
    found = re.search(r"\[(\d+\.\d+\.\d+)", nodeid)
    # Tests of the proxy that name no release have the cluster of the newest.
    release = found[1] if found else NEWEST if shared == "clusters" else ""
    return f"{shared} {release}".rstrip()


class Groups(LoadScopeScheduling):  # type: ignore[misc]
    """Groups first, those of most tests before others; then pieces of modules. A process goes on
    with the module that it is in, so that what a module makes for its tests is made once."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._scopes: dict[str, str] = {}
        self._modules: Counter[str] = Counter()
        self._in: dict[Any, str] = {}
        """Process -> the module that it is in; nothing for a group."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid not in self._scopes:
            module = nodeid.partition("::")[0]
            number = self._modules[module] // NEIGHBOURS
            self._modules[module] += 1
            self._scopes[nodeid] = group(nodeid) or f"{module} {number}"
        return self._scopes[nodeid]

    def _assign_work_unit(self, node: Any) -> None:
        scope = following(self.workqueue, self._in.get(node, ""), set(self._in.values()))
        self._in[node] = module_of(scope)
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)


def module_of(scope: str) -> str:
    """Return the module of which a scope is a piece, or nothing for a group."""
    module = scope.rpartition(" ")[0]
    return module if module.endswith(".py") else ""


def following(queue: Mapping[str, Collection[Any]], module: str, taken: Collection[str]) -> str:
    """Choose a scope for a process that was in a module: a group, a piece of the same module, one
    of a module in which no process is, or whatever is left.

    >>> following({"a.py 2": "..", "b.py 0": ".", "spark": "."}, "b.py", ["a.py", "b.py"])
    'spark'
    >>> following({"a.py 2": "..", "b.py 0": "."}, "b.py", ["a.py", "b.py"])
    'b.py 0'
    >>> following({"a.py 2": "..", "c.py 0": "."}, "b.py", ["a.py", "b.py"])
    'c.py 0'
    """

    def turn(scope: str) -> tuple[int, int]:
        mine = module_of(scope)
        if not mine:
            return 0, -len(queue[scope])
        return (1 if mine == module else 3 if mine in taken else 2), 0

    return min(queue, key=turn)
