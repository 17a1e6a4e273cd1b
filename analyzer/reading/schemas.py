"""Schemas from the user's options, and schemas in the capture itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import safe
from kafkascope.captures.inputs.opening import is_once
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import KnownSchemas

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.offline import OpenInput
    from kafkascope.analyzer.exchanges.seen_schemas import SeenSchemas
    from kafkascope.analyzer.reading.options import ReadOptions, SchemaOptions
    from kafkascope.schemas.framing import Side
    from kafkascope.schemas.known import Assigned
    from kafkascope.schemas.model import Schema, SchemaKey


def payloads_of(options: ReadOptions, capture: OpenInput | None = None) -> Payloads | None:
    """Return the decoder of keys and values; None with --no-schemas.

    Schemas in the capture are read in an extra pass over files, at the first unknown id. If the
    input cannot be read twice, they are taken from `capture` while it is read.
    """
    if options.schemas.off:
        return None
    if any(map(is_once, options.inputs)):
        known = known_of(options.schemas, quiet=options.quiet)
        if capture is not None:
            _listen(known, capture)
        return Payloads(known)

    return payloads_for(options.schemas, lambda: _seen(options), quiet=options.quiet)


def payloads_for(
    wanted: SchemaOptions, seen: Callable[[], SeenSchemas], *, quiet: bool = False
) -> Payloads | None:
    """Return the decoder of keys and values for input that can be read twice; None with
    --no-schemas. `seen`: reads the schemas in the input; called at the first unknown id."""
    if wanted.off:
        return None

    def complete() -> Iterable[Schema]:
        found = seen()
        _print_problems(found.problems, quiet=quiet)
        return found.schemas()

    return Payloads(known_of(wanted, complete=complete, quiet=quiet))


def seen_with(options: ReadOptions, capture: OpenInput) -> tuple[Payloads, SeenSchemas]:
    """Return the decoder of keys and values, and the schemas in the capture: all of them, or as
    they come if the input cannot be read twice."""
    known = known_of(options.schemas, quiet=options.quiet)
    if any(map(is_once, options.inputs)):
        return Payloads(known), _listen(known, capture)
    seen = _seen(options)
    _print_problems(seen.problems, quiet=options.quiet)
    for each in seen.schemas():
        known.add(each)
    return Payloads(known), seen


def _seen(options: ReadOptions) -> SeenSchemas:
    from kafkascope.analyzer.exchanges.seen_schemas import seen_in

    return seen_in(
        options.inputs,
        decode_as=options.ports,
        keylog=options.keylog,
        legs="both" if options.both_legs else "client",
    )


def known_of(
    wanted: SchemaOptions,
    *,
    complete: Callable[[], Iterable[Schema]] | None = None,
    quiet: bool = False,
    want: Callable[[SchemaKey], None] | None = None,
) -> KnownSchemas:
    """Return the schemas that options give. `complete`: returns the schemas in a capture. `want`:
    called with missing ids, instead of the registry."""
    from kafkascope.schemas.folder import read_folder

    given: list[Schema] = []
    for path in wanted.folders:
        folder = read_folder(path)
        given += folder.schemas
        _print_problems(folder.problems, quiet=quiet)
    assigned = assigned_schemas(wanted.assigned)
    if want is not None:
        return KnownSchemas(given, assigned=assigned, complete=complete, registry=want)

    def print_problem(problem: str) -> None:
        _print_problems((problem,), quiet=quiet)

    fetch = None if wanted.registry is None else registry_of(wanted, print_problem)

    def registry(key: SchemaKey) -> Schema | None:
        schemas = [] if fetch is None else fetch(key)
        for reference in schemas[1:]:
            known.add(reference)
        return schemas[0] if schemas else None

    known = KnownSchemas(
        given,
        assigned=assigned,
        complete=complete,
        registry=None if fetch is None else registry,
        report=print_problem,
    )
    return known


def assigned_schemas(texts: Iterable[str]) -> dict[tuple[str, Side], Assigned]:
    """Read the files of `--schema` options. Raises a usage error, or `MissingExtra`."""
    from kafkascope.schemas.folder import assigned_of

    try:
        return dict(map(assigned_of, texts))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--schema") from None


def registry_of(
    wanted: SchemaOptions, tell: Callable[[str], None]
) -> Callable[[SchemaKey], list[Schema]]:
    """Return the function that fetches a schema and its references from the registry. `tell`:
    called with problems."""
    from kafkascope.schemas.registry import Registry

    try:
        return Registry(wanted.registry or "", ca_file=wanted.ca, tell=tell).with_references
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--registry") from None
    except OSError as error:
        why = f'"{wanted.ca}": {error.strerror or "no certificates in it"}'
        raise click.BadParameter(why, param_hint="--registry-ca") from None


def _listen(known: KnownSchemas, capture: OpenInput) -> SeenSchemas:
    """Take the schemas in a capture while it is read."""
    from kafkascope.analyzer.exchanges.seen_schemas import listen

    seen = listen(capture)
    known.grows(seen)
    return seen


def _print_problems(problems: Iterable[str], *, quiet: bool) -> None:
    if not quiet:
        for each in problems:
            say(safe(each))
