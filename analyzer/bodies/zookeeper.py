"""Facts of ZooKeeper messages for the columns of rows: their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.bodies.facts import NO_FACTS, BodyFacts

if TYPE_CHECKING:
    from kafkascope.dissectors.registry import Decoded

# The result of operations after the one that failed.
BEHIND: Final = -2


def zookeeper_facts(request: Decoded | None, response: Decoded | None) -> BodyFacts:
    """Return the facts of a request and its answer, in the form that those of Kafka's have."""
    if response is None:
        return NO_FACTS
    errors: list[tuple[Any, ...]] = []
    code = response.header.get("err", 0)
    if code:
        errors.append(_error(code, top=True))
    for index, each in enumerate(response.body.get("results", ())):
        failed = each["error"]
        if failed and failed != BEHIND:
            errors.append(_error(failed, top=False, about=_path_of(request, index)))
    return NO_FACTS._replace(errors=tuple(errors)) if errors else NO_FACTS


def _error(code: int, *, top: bool, about: str | None = None) -> tuple[Any, ...]:
    return (code, top, None, None, None, None, about)


def _path_of(request: Decoded | None, index: int) -> str | None:
    operations = () if request is None else request.body.get("operations", ())
    return operations[index]["path"] if index < len(operations) else None
