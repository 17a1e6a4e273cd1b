"""What messages of ZooKeeper say that rows have columns for: their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.bodies.facts import NO_FACTS, BodyFacts

if TYPE_CHECKING:
    from kafkascope.dissectors.registry import Decoded

# The result of operations behind the one that failed.
BEHIND: Final = -2


def zookeeper_facts(asked: Decoded | None, told: Decoded | None) -> BodyFacts:
    """Return the facts of a request and its answer, in the form that those of Kafka's have."""
    if told is None:
        return NO_FACTS
    errors: list[tuple[Any, ...]] = []
    code = told.header.get("err", 0)
    if code:
        errors.append(_error(code, top=True))
    for index, each in enumerate(told.body.get("results", ())):
        failed = each["error"]
        if failed and failed != BEHIND:
            errors.append(_error(failed, top=False, about=_path_of(asked, index)))
    return NO_FACTS._replace(errors=tuple(errors)) if errors else NO_FACTS


def _error(code: int, *, top: bool, about: str | None = None) -> tuple[Any, ...]:
    return (code, top, None, None, None, None, about)


def _path_of(asked: Decoded | None, index: int) -> str | None:
    operations = () if asked is None else asked.body.get("operations", ())
    return operations[index]["path"] if index < len(operations) else None
