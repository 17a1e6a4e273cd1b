"""Kafka's own generated message classes as a codec: one child process that answers line by line."""

from typing import Any, Self

from tests.interop.asked import Asked
from tests.interop.maven import BROKERS, compiled, jars

__all__ = ["Oracle"]


class Oracle:
    """java/Oracle.java with the jars of one broker release; a context manager."""

    def __init__(self, version: str) -> None:
        self.version = version
        classes = compiled(jars(f"broker-{version}", BROKERS[version]), ["Oracle"])
        # It looks for message classes in the jars of its class path, so these are named one by one.
        path = ":".join([str(classes.classes), *map(str, sorted(classes.lib.glob("*.jar")))])
        self._asked = Asked("Oracle", path, 512)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._asked.__exit__(*failure)

    def ask(self, **question: Any) -> dict[str, Any]:
        """One answer; `ok` says whether Kafka took it."""
        return self._asked.ask(**question)

    def messages(self) -> dict[str, tuple[int, int]]:
        """All messages this release has, with their lowest and highest version."""
        told = self.ask(list=True)["messages"]
        return {name: (low, high) for name, (low, high) in told.items()}
