"""`kafkascope fixture`: messages as files, for the tests of clients, brokers and proxies."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from kafkascope.analyzer.commands.options import reading_options
from kafkascope.analyzer.fixtures import Fixture
from kafkascope.analyzer.heap import large_apart
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.terminal import out, say, stdout_bytes

WRONG: Final = 1
SHOWN: Final = 20
FROM: Final = "from"
"""The command that a capture is given to; users leave it out."""


class _Group(click.Group):
    """`check` and `new` are reserved words; anything else is a capture (`./check` is a file)."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a reserved word, captures follow."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [FROM, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Group, invoke_without_command=False)
def fixture() -> None:
    """Messages as files: bytes, decoded JSON and a manifest, for interop tests in any language.

    \b
      kafkascope fixture prod.pcapng -Y 'api == JoinGroup' -o fixtures/ --redact keys
      kafkascope fixture check fixtures/
      kafkascope fixture new Fetch 12 --set topics.0.topic=orders -o fixtures/
      kafkascope fixture new --matrix -o matrix/
    """


@fixture.command(FROM, hidden=True)
@reading_options("output")
@click.option(
    "--per-version",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most N messages of each API, version and direction [one for each shape].",
)
@click.option(
    "--redact",
    type=click.Choice(["none", "values", "keys", "all"]),
    default="values",
    show_default=True,
    help="What becomes asterisks; all: names, too. Secrets always.",
)
def from_captures(options: ReadOptions, per_version: int | None, redact: Any) -> int:
    """Write the messages of a capture as fixtures: -o DIR, or -o FILE.jsonl."""
    from kafkascope.analyzer.fixtures.make import Making
    from kafkascope.analyzer.fixtures.records import SIDES
    from kafkascope.analyzer.reading.reading import INTERRUPTED, Reading
    from kafkascope.analyzer.transform.names.pseudonyms import Pseudonyms
    from kafkascope.analyzer.transform.redaction import Redaction

    target = _target(options.output)
    large_apart()
    redaction = Redaction(redact, Pseudonyms(same_length=True))
    with Reading(options) as reading:
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
        made = making.fixtures()
        _write(made, target, redact)
        if not options.quiet:
            say(f"{len(made)} message{'s' * (len(made) != 1)} written to {target}")
            for reason, count in sorted(making.left_out.items()):
                say(f"{count} messages left out: {reason}")
            for remark in redaction.names.remarks:
                say(remark)
        return reading.finish()


@fixture.command("check")
@click.argument("places", metavar="DIR...", nargs=-1, required=True)
@click.option("-q", "--quiet", is_flag=True, help="Only the exit code.")
def check_fixtures(places: tuple[str, ...], quiet: bool) -> int:
    """Decode and encode each fixture again; ends with 1 when one is not what it says."""
    from kafkascope.analyzer.fixtures.check import check
    from kafkascope.analyzer.fixtures.folder import BadFixtures, read

    wrong = count = 0
    for place in places:
        try:
            for found in read(Path(place)):
                count += 1
                remarks = list(check(found))
                wrong += bool(remarks)
                for remark in remarks:
                    if not quiet:
                        out(f"{remark.name}: {remark.text}")
        except FileNotFoundError:
            say(f"{place}: there is no such file or folder")
            return 3
        except (BadFixtures, OSError) as error:
            say(f"{error}")
            return 3
    if not quiet:
        said = "all are what they say" if not wrong else f"{wrong} are not what they say"
        say(f"{count} fixtures, {said}")
    return WRONG if wrong else 0


@fixture.command("new")
@click.argument("api", required=False)
@click.argument("version", type=int, required=False)
@click.option(
    "--set", "settings", multiple=True, metavar="PATH=VALUE", help="Such as topics.0.topic=x."
)
@click.option("--response", is_flag=True, help="The response, not the request.")
@click.option(
    "--form",
    type=click.Choice(["default", "null", "empty", "full", "tagged"]),
    help="How fields are filled.",
)
@click.option("--matrix", "whole", is_flag=True, help="Every form of every version [of API].")
@click.option("-o", "output", metavar="DIR", help="A folder, or FILE.jsonl; else JSON on stdout.")
def new(
    api: str | None,
    version: int | None,
    settings: tuple[str, ...],
    response: bool,
    form: Any,
    whole: bool,
    output: str | None,
) -> int:
    """Make a message from nothing: fields that are not set have their defaults.

    \b
      kafkascope fixture new Fetch 12 --set topics.0.topic=orders --set max_wait_ms=500
      kafkascope fixture new Metadata 12 --response --form full -o fixtures/
      kafkascope fixture new --matrix -o matrix/
    """
    from kafkascope.analyzer.fixtures import new as making
    from kafkascope.dissectors.errors import DissectError
    from kafkascope.dissectors.registry import api_named

    try:
        chosen = api_named(api) if api else None
        if whole:
            if settings or form or version is not None:
                raise click.UsageError("--matrix has all versions and forms")
            made = list(making.matrix([chosen] if chosen else []))
        else:
            if chosen is None or version is None:
                raise click.UsageError("which message? API VERSION, or --matrix")
            if settings and form:
                raise click.UsageError("--set begins with defaults; leave out --form")
            if version not in chosen.versions:
                raise click.UsageError(f"{chosen.name} has versions {chosen.versions}")
            side: Any = "response" if response else "request"
            if settings:
                made = [making.fixture_with(chosen, version, side, settings)]
            else:
                made = [making.fixture_of(chosen, version, side, form or "default")]
    except DissectError as error:
        raise click.UsageError(str(error)) from None
    if output is None or output == "-":
        _print(made)
    else:
        target = Path(output)
        _write(made, target, "none")
        say(f"{len(made)} message{'s' * (len(made) != 1)} written to {target}")
    return 0


def _target(output: str | None) -> Path:
    if output in (None, "-"):
        raise click.UsageError("where to? -o DIR, or -o FILE.jsonl")
    assert output is not None
    return Path(output)


def _write(made: list[Fixture], target: Path, redaction: str) -> None:
    from kafkascope.analyzer.fixtures.folder import MANIFEST, write_folder, write_lines

    if target.suffix.lower() == ".jsonl":
        write_lines(made, target)
        return
    strange = target.is_dir() and any(target.iterdir()) and not (target / MANIFEST).exists()
    if strange or (target.exists() and not target.is_dir()):
        raise click.UsageError(f"{target} is there already and holds no fixtures")
    write_folder(made, target, redaction)


def _print(made: list[Fixture]) -> None:
    from kafkascope.analyzer.fixtures.folder import line_of

    stdout_bytes().writelines(map(line_of, made))
