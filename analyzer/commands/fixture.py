"""`kafkascope fixture`: messages as files, for the tests of clients, brokers and proxies."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from kafkascope.analyzer.commands.help import CommandGroup, complete_files, complete_from, setting
from kafkascope.analyzer.commands.options import reading_options
from kafkascope.analyzer.commands.output import target_of
from kafkascope.analyzer.fixtures import Fixture
from kafkascope.analyzer.heap import large_apart
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.terminal import out, say, stdout_bytes, stdout_lines
from kafkascope.analyzer.text import plural
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.registry import api_named, api_names
from kafkascope.errors import INTERRUPTED

WRONG: Final = 1
FROM: Final = "from"
"""The default command of the group, which users leave out."""


@click.group(cls=CommandGroup, default=FROM)
def fixture() -> None:
    """Write messages as test fixtures for any language.

    A fixture is the bytes of a message and its decoded JSON; a manifest lists all fixtures. -o is
    a folder, or FILE.jsonl.

    \b
      kafkascope fixture prod.pcapng -Y 'api == JoinGroup' -o fixtures/
      kafkascope fixture check fixtures/
      kafkascope fixture new Fetch 12 --set topics.0.topic=orders -o fixtures/
      kafkascope fixture new --matrix -o matrix/
    """


@fixture.command(FROM, hidden=True)
@reading_options("output", helps={"output": "Folder to write, or FILE.jsonl"})
@setting(
    "--per-version",
    "N",
    "Maximum messages for each API, version, and direction (default: one for each shape)",
    type=click.IntRange(min=1),
)
@setting(
    "--redact",
    "LEVEL",
    "Mask none, values, keys (and values), or all (names, too); secrets always",
    type=click.Choice(["none", "values", "keys", "all"]),
    default="values",
)
def from_captures(options: ReadOptions, per_version: int | None, redact: Any) -> int:
    """Write the messages of a capture as fixtures."""
    from kafkascope.analyzer.fixtures.make import Making
    from kafkascope.analyzer.fixtures.records import SIDES
    from kafkascope.analyzer.reading.reading import Reading
    from kafkascope.analyzer.transform.names.pseudonyms import Pseudonyms
    from kafkascope.analyzer.transform.redaction import Redaction

    target = target_of(options.output, "-o DIR or -o FILE.jsonl")
    large_apart()
    redaction = Redaction(redact, Pseudonyms(same_length=True))
    with Reading(options, once=True) as reading:
        reading.demand_packets("fixture new")
        making = Making(
            redaction,
            per_version=per_version,
            captures=reading.capture.source.names,
            payloads=reading.payloads if redact in SIDES else None,
            names=reading.capture.context.names,
        )
        try:
            for _, exchange in reading.rows():
                making.add(exchange)
        except KeyboardInterrupt:
            reading.code = INTERRUPTED
        fixtures = making.fixtures()
        _write(fixtures, target, redact)
        if not options.quiet:
            say(f"{plural(len(fixtures), 'message')} written to {target}")
            for reason, count in sorted(making.left_out.items()):
                say(f"{plural(count, 'message')} left out: {reason}")
            for remark in redaction.names.remarks:
                say(remark)
        return reading.finish()


@fixture.command("check")
@click.argument("places", metavar="DIR...", nargs=-1, required=True, shell_complete=complete_files)
@setting("-q --quiet", "", "Print nothing, only exit")
def check_fixtures(places: tuple[str, ...], quiet: bool) -> int:
    """Verify that fixtures round-trip.

    Exits with 1 on mismatch.
    """
    from kafkascope.analyzer.fixtures.check import check
    from kafkascope.analyzer.fixtures.folder import BadFixtures, read

    wrong = count = 0
    for path in places:
        try:
            for stored in read(Path(path)):
                count += 1
                remarks = list(check(stored))
                wrong += bool(remarks)
                for remark in remarks:
                    if not quiet:
                        out(f"{remark.name}: {remark.text}")
        except FileNotFoundError:
            say(f"{path}: no such file or folder")
            return 3
        except (BadFixtures, OSError) as error:
            say(f"{error}")
            return 3
    if not quiet:
        say(f"{count} fixtures OK" if not wrong else f"{wrong} of {count} fixtures differ")
    return WRONG if wrong else 0


@fixture.command("new")
@click.argument("api", required=False, shell_complete=complete_from(api_names))
@click.argument("version", type=int, required=False)
@setting(
    "--set settings", "PATH=VALUE", "Field to set, for example topics.0.topic=x", multiple=True
)
@setting("--response", "", "Make the response, not the request")
@setting(
    "--form",
    "FORM",
    "Fill fields: default, null, empty, full, tagged (default: default)",
    type=click.Choice(["default", "null", "empty", "full", "tagged"]),
)
@setting("--matrix whole", "", "Make every form of every version")
@setting("-o output", "DIR", "Folder or FILE.jsonl (default: JSON on stdout)")
def new(
    api: str | None,
    version: int | None,
    settings: tuple[str, ...],
    response: bool,
    form: Any,
    whole: bool,
    output: str | None,
) -> int:
    """Make a message from scratch.

    Fields that are not set have defaults.

    \b
      kafkascope fixture new Fetch 12 --set topics.0.topic=orders
      kafkascope fixture new Metadata 12 --response --form full -o fixtures/
      kafkascope fixture new --matrix -o matrix/
    """
    from kafkascope.analyzer.fixtures import new as making

    try:
        chosen = api_named(api) if api else None
        if whole:
            if settings or form or version is not None:
                raise click.UsageError(
                    "--matrix makes all versions and forms: leave out VERSION, --form and --set"
                )
            fixtures = list(making.matrix([chosen] if chosen else []))
        else:
            if chosen is None or version is None:
                raise click.UsageError(
                    "API and VERSION are missing: write, for example, Fetch 12, or --matrix"
                )
            if settings and form:
                raise click.UsageError("--set starts from defaults: leave out --form")
            if version not in chosen.versions:
                raise click.UsageError(
                    f"{chosen.name} has no version {version}: choose from {chosen.versions}"
                )
            side: Any = "response" if response else "request"
            if settings:
                fixtures = [making.fixture_with(chosen, version, side, settings)]
            else:
                fixtures = [making.fixture_of(chosen, version, side, form or "default")]
    except DissectError as error:
        field = f"{error.path}: " if error.path else ""
        raise click.UsageError(f"{field}{error.reason}") from None
    if output is None or output == "-":
        _print(fixtures)
    else:
        target = Path(output)
        _write(fixtures, target, "none")
        say(f"{plural(len(fixtures), 'message')} written to {target}")
    return 0


def _write(fixtures: list[Fixture], target: Path, redaction: str) -> None:
    from kafkascope.analyzer.fixtures.folder import MANIFEST, write_folder, write_lines

    if target.suffix.lower() == ".jsonl":
        write_lines(fixtures, target)
        return
    strange = target.is_dir() and any(target.iterdir()) and not (target / MANIFEST).exists()
    if strange or (target.exists() and not target.is_dir()):
        raise click.UsageError(f"{target} exists and holds no fixtures: choose another -o")
    write_folder(fixtures, target, redaction)


def _print(fixtures: list[Fixture]) -> None:
    from kafkascope.analyzer.fixtures.folder import line_of

    stdout_lines(stdout_bytes(), "jsonl").writelines(map(line_of, fixtures))
