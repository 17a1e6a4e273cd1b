"""The options that mean the same in every command that reads captures, and what they say
together."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Collection
from typing import Any, Final

import click

from kafkascope.analyzer.commands.tables import WIDE
from kafkascope.analyzer.reading.options import (
    FORMATS,
    REPORTS,
    Format,
    ReadOptions,
    SchemaOptions,
)
from kafkascope.analyzer.render import times as render_times
from kafkascope.extras import require

DECODE_AS: Final = re.compile(r"tcp\.port\s*==\s*(\d{1,5})(?:\s*[-:]\s*(\d{1,5}))?\s*,\s*(\w+)\Z")
MAX_PORTS: Final = 65_536
SCHEMAS: Final = ("schema_folders", "assigned", "registry", "registry_ca", "no_schemas")
"""The options of `SchemaOptions`, in its order."""


def check_schemas(
    ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the values of `--schema`, whose files can be read."""
    if value and not ctx.resilient_parsing:
        from kafkascope.analyzer.reading.schemas import assigned_schemas

        assigned_schemas(value)
    return value


def known_release(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The value of an option that names a Kafka release."""
    if value is None:
        return None
    from kafkascope.dissectors.reference.releases import release_key

    try:
        release_key(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return value.strip().removeprefix("v")


def input_options(function: Callable[..., int]) -> Callable[..., int]:
    """INPUT... and all common options, given to the command as `options`."""
    return _with(function, frozenset(_OPTIONS))


def reporting_options(function: Callable[..., int]) -> Callable[..., int]:
    """The same, and `--format` knows the reports of CI systems as well."""
    given = _with(function, frozenset(_OPTIONS) - {"form"}, "form")
    choice = click.Choice((*FORMATS, *REPORTS))
    return click.option("--format", "form", type=choice, help="Output format.")(given)


def reading_options(
    *more: str, without: Collection[str] = ()
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """INPUT..., what is read of it and how much is said; `more` are those of the other common
    options that the command has a use for (names as in `_OPTIONS`): none is taken and ignored.
    `without`: those that it has none for, or one of the same name that means something else."""
    chosen = frozenset(_OPTIONS) - _SHOWING - {*without} | {*more}
    return lambda function: _with(function, chosen)


def schema_options(function: Callable[..., int]) -> Callable[..., int]:
    """Where schemas come from, given to the command as `schemas`."""

    @functools.wraps(function)
    def command(**given: Any) -> int:
        return function(schemas=SchemaOptions(*(given.pop(name) for name in SCHEMAS)), **given)

    for name in reversed(SCHEMAS):
        command = _OPTIONS[name](command)
    return command


def _with(function: Callable[..., int], chosen: frozenset[str], *own: str) -> Callable[..., int]:
    """`own`: names of options that the command declares by itself."""

    @functools.wraps(function)
    def command(**given: Any) -> int:
        common = {name: given.pop(name) for name in (*chosen, *own)}
        return function(options=_read_options(**_ABSENT | common), **given)

    for name in reversed(_OPTIONS):
        if name in chosen:
            command = _OPTIONS[name](command)
    return command


def _read_options(
    *,
    inputs: tuple[str, ...],
    filter_text: str | None,
    begin: str | None,
    end: str | None,
    decode_as: tuple[str, ...],
    keylog: tuple[str, ...],
    form: Format | None,
    as_json: bool,
    columns: str | None,
    type_: str | None,
    fields: tuple[str, ...],
    field_options: tuple[str, ...],
    legs: str,
    no_progress: bool,
    schema_folders: tuple[str, ...],
    assigned: tuple[str, ...],
    registry: str | None,
    registry_ca: str | None,
    no_schemas: bool,
    **others: Any,
) -> ReadOptions:
    if fields and type_ not in (None, "fields"):
        raise click.UsageError("-e belongs to -T fields")
    if type_ == "fields" and not fields:
        raise click.UsageError("-T fields needs -e FIELD, once or several times")
    if type_ in ("json", "jsonl", "tsv", "csv", "table"):
        form = form or type_  # type: ignore[assignment]
    return ReadOptions(
        inputs=inputs,
        filter_text=spelled(filter_text or ""),
        begin=_mark("--from", begin),
        end=_mark("--to", end),
        ports=frozenset(port for text in decode_as for port in ports_of(text)),
        form="jsonl" if as_json else form or "table",
        columns=tuple(part.strip() for part in columns.split(",") if part.strip())
        if columns
        else (),
        fields=fields,
        field_options=field_options,
        both_legs=legs == "both",
        keylog=key_logs(keylog),
        progress=not no_progress,
        schemas=SchemaOptions(schema_folders, assigned, registry, registry_ca, no_schemas),
        **others,
    )


def spelled(text: str) -> str:
    """A filter in which saved ones (`@name`) are written out."""
    if "@" not in text:
        return text
    from kafkascope.analyzer.filter import saved

    return saved.spelled(text)


def _mark(option: str, text: str | None) -> render_times.Mark | None:
    if text is None:
        return None
    try:
        return render_times.mark(text.strip())
    except ValueError as error:
        raise click.BadParameter(f'"{text}": {error}', param_hint=option) from None


def spare_pandas() -> None:
    """Write tables without pandas, where this process is the program's own, and not that of
    somebody who calls its commands."""
    context = click.get_current_context(silent=True)
    if context is not None and context.find_root().obj is True:
        from kafkascope.analyzer.pipeline.tables.arrow import spare_pandas

        spare_pandas()


def key_logs(given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths of `--keylog` options; `env` stands for what SSLKEYLOGFILE names."""
    if given:
        require("--keylog")
    found = []
    for path in given:
        if path == "env":
            path = os.environ.get("SSLKEYLOGFILE", "")
            if not path:
                raise click.BadParameter("SSLKEYLOGFILE is not set", param_hint="--keylog")
        found.append(path)
    return tuple(found)


def ports_of(text: str) -> range:
    """The ports of a `-d` option; a usage error says what is wrong."""
    match = DECODE_AS.match(text.strip())
    if match is None:
        raise click.BadParameter(f'"{text}": write tcp.port==9094,kafka', param_hint="-d")
    if match[3].lower() != "kafka":
        raise click.BadParameter(f'"{match[3]}": only kafka can be decoded', param_hint="-d")
    low, high = int(match[1]), int(match[2] or match[1])
    if not 0 < low <= high < MAX_PORTS:
        raise click.BadParameter(f'"{text}": ports are 1 to 65535', param_hint="-d")
    return range(low, high + 1)


def _filters(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """For shells: the filter as it would be with each word that fits its end."""
    from kafkascope.analyzer.filter.language import complete
    from kafkascope.analyzer.filter.names import names_at, without_names
    from kafkascope.analyzer.filter.saved import read_saved
    from kafkascope.analyzer.findings import RULES

    found = names_at(incomplete, len(incomplete), read_saved()[0])
    if found is None:
        found = complete(without_names(incomplete), findings=RULES)
    return [incomplete[: found.begin] + item.text for item in found.items]


def _fields(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """For shells: the fields whose names begin so."""
    from kafkascope.analyzer.filter.fields import all_names

    front = "kafka." if incomplete.lower().startswith("kafka.") else ""
    names = (front + name for name in all_names())
    return [name for name in names if name.startswith(incomplete.lower())]


KEYLOG: Final = click.option(
    "--keylog",
    multiple=True,
    metavar="FILE",
    help="Decrypt TLS with a key log (see `kafkascope tls-keys`); env: the one of SSLKEYLOGFILE.",
)
_OPTIONS: Final = {
    "inputs": click.argument("inputs", metavar="INPUT...", nargs=-1, required=True),
    "filter_text": click.option(
        "-Y",
        "--filter",
        "filter_text",
        metavar="FILTER",
        help="Display filter.",
        shell_complete=_filters,
    ),
    "count": click.option(
        "-c", "count", type=click.IntRange(min=1), metavar="N", help="Stop after N exchanges."
    ),
    "begin": click.option(
        "--from", "begin", metavar="TIME", help="Clock, date, seconds, or -5m (of the end)."
    ),
    "end": click.option("--to", "end", metavar="TIME", help="The same."),
    "time_format": click.option(
        "-t",
        "time_format",
        type=click.Choice(list(render_times.TIME_FORMATS)),
        default="a",
        help="Time: a clock, d since before, r since start, e epoch, u UTC; with date ad, ud.",
    ),
    "decode_as": click.option(
        "-d",
        "decode_as",
        multiple=True,
        metavar="tcp.port==N,kafka",
        help="Decode a port as Kafka.",
    ),
    "keylog": KEYLOG,
    "schema_folders": click.option(
        "--schemas",
        "schema_folders",
        multiple=True,
        metavar="DIR",
        help="Schemas of keys and values: 17.avsc, 17.proto, 17.json by id, or an index.json.",
    ),
    "assigned": click.option(
        "--schema",
        "assigned",
        multiple=True,
        metavar="TOPIC[:key]=FILE[#MESSAGE]",
        callback=check_schemas,
        help="The schema of a topic whose values carry no id.",
    ),
    "registry": click.option(
        "--registry", metavar="URL", help="Ask a schema registry for the schemas that are missing."
    ),
    "registry_ca": click.option(
        "--registry-ca", metavar="FILE", help="Certificates that the registry's is verified with."
    ),
    "no_schemas": click.option(
        "--no-schemas", is_flag=True, help="Leave keys and values as they are."
    ),
    "output": click.option("-o", "--output", metavar="FILE", help="Write there instead of stdout."),
    "form": click.option("--format", "form", type=click.Choice(FORMATS), help="Output format."),
    "as_json": click.option("--json", "as_json", is_flag=True, help="Short for --format jsonl."),
    "raw": click.option(
        "--raw", is_flag=True, help="csv: no ' before text that spreadsheets take for formulas."
    ),
    "columns": click.option(
        "--columns", metavar="A,B,C", help="Columns, or any fields of `kafkascope fields`."
    ),
    "wide": WIDE,
    "type_": click.option(
        "-T", "type_", type=click.Choice(["fields", *FORMATS]), help="As tshark: with -e FIELD..."
    ),
    "fields": click.option(
        "-e",
        "fields",
        multiple=True,
        metavar="FIELD",
        help="A field of -T fields.",
        shell_complete=_fields,
    ),
    "field_options": click.option(
        "-E",
        "field_options",
        multiple=True,
        metavar="X=Y",
        help="header, separator, occurrence, ...",
    ),
    "sort": click.option(
        "--sort",
        metavar="COLUMN",
        help="Sort; sizes and times largest first.",
        shell_complete=_fields,
    ),
    "top": click.option(
        "-n", "top", type=click.IntRange(min=1), metavar="N", help="The first N rows."
    ),
    "legs": click.option(
        "--legs", type=click.Choice(["client", "both"]), default="client", hidden=True
    ),
    "quiet": click.option("-q", "--quiet", is_flag=True, help="No remarks on stderr."),
    "verbose": click.option("-v", "--verbose", is_flag=True, help="More remarks on stderr."),
    "color": click.option(
        "--color", type=click.Choice(["auto", "always", "never"]), default="auto"
    ),
    "jobs": click.option(
        "--jobs",
        type=click.IntRange(0, 64),
        default=0,
        metavar="N",
        help="Processes that read large files together; without, as many as there are cores.",
    ),
    "plain": click.option("--plain", is_flag=True, help="ASCII only."),
    "no_progress": click.option("--no-progress", is_flag=True, help="No progress on stderr."),
}
_SHOWING: Final = frozenset(
    {
        *("time_format", "output", "form", "as_json", "raw", "columns", "wide"),
        *("type_", "fields", "field_options", "sort", "top", "jobs"),
    }
)
"""How rows are shown, and where."""
_ABSENT: Final[dict[str, Any]] = {
    **dict.fromkeys(("count", "begin", "end", "output", "form", "columns", "type_", "sort", "top")),
    "time_format": "a",
    "as_json": False,
    "raw": False,
    "wide": False,
    "fields": (),
    "field_options": (),
    "keylog": (),
    "schema_folders": (),
    "assigned": (),
    "registry": None,
    "registry_ca": None,
    "no_schemas": False,
    "jobs": 0,
}
"""What the command was not asked for: see `reading_options`."""
