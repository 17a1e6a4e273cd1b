"""The options that mean the same in every command that reads captures, and what they say
together."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import click

from kafkascope.analyzer.commands.file_path import FilePath
from kafkascope.analyzer.commands.help import Function, Option, option
from kafkascope.analyzer.commands.tables import format_option, json_option, wide_option
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
NO_HELPS: Final[Mapping[str, str]] = MappingProxyType({})
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
    from kafkascope.dissectors.reference.releases import known_release as checked

    try:
        return checked(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def input_options(function: Callable[..., int]) -> Callable[..., int]:
    """INPUT... and all common options, given to the command as `options`."""
    return _with(function, frozenset(_OPTIONS))


def reporting_options(function: Callable[..., int]) -> Callable[..., int]:
    """INPUT... and all common options; `--format` knows the reports of CI systems as well."""
    given = _with(function, frozenset(_OPTIONS) - {"form"}, declared=["form"])
    return format_option((*FORMATS, *REPORTS), section="Output", shared=True)(given)


def reading_options(
    *more: str, without: Collection[str] = (), helps: Mapping[str, str] = NO_HELPS
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """INPUT..., what is read of it and how much is said; `more` are those of the other common
    options that the command has a use for (names as in `_OPTIONS`): none is taken and ignored.
    `without`: those that it has none for, or one of the same name that means something else.
    `helps`: what options mean here, where it is more than in other commands."""
    chosen = frozenset(_OPTIONS) - _SHOWING - {*without} | {*more}
    return lambda function: _with(function, chosen, own=_WRITING.intersection(more), helps=helps)


def schema_options(function: Callable[..., int]) -> Callable[..., int]:
    """Where schemas come from, given to the command as `schemas`."""

    @functools.wraps(function)
    def command(**given: Any) -> int:
        return function(schemas=SchemaOptions(*(given.pop(name) for name in SCHEMAS)), **given)

    for declare in reversed(SCHEMA_OPTIONS):
        command = declare(command)
    return command


def _with(
    function: Callable[..., int],
    chosen: frozenset[str],
    *,
    declared: Sequence[str] = (),
    own: Collection[str] = (),
    helps: Mapping[str, str] = NO_HELPS,
) -> Callable[..., int]:
    """Add the `chosen` options. `declared`: those that the caller adds itself. `own`: those that
    the help lists with the options of the command."""

    @functools.wraps(function)
    def command(**given: Any) -> int:
        common = {name: given.pop(name) for name in (*chosen, *declared)}
        return function(options=_read_options(**_ABSENT | common), **given)

    for name in reversed(_OPTIONS):
        if name in chosen:
            command = _OPTIONS[name](command)
            made: Option = command.__click_params__[-1]  # type: ignore[attr-defined]
            if name in own:
                made.shared = False
            made.help = helps.get(name, made.help)
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
        raise click.UsageError("-e needs -T fields")
    if type_ == "fields" and not fields:
        raise click.UsageError("-T fields needs at least one -e FIELD")
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
                raise click.BadParameter(
                    "SSLKEYLOGFILE is not set; write --keylog FILE", param_hint="--keylog"
                )
        found.append(path)
    return tuple(found)


def ports_of(text: str) -> range:
    """The ports of a `-d` option; a usage error says what is wrong."""
    match = DECODE_AS.match(text.strip())
    if match is None:
        raise click.BadParameter(f'"{text}": write tcp.port==9094,kafka', param_hint="-d")
    if match[3].lower() != "kafka":
        raise click.BadParameter(f'"{match[3]}": only kafka is supported', param_hint="-d")
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


def keylog_option(**settings: Any) -> Callable[[Function], Function]:
    """Declare `--keylog`; `settings` are those of `Option`."""
    return option(
        "--keylog",
        multiple=True,
        metavar="FILE",
        help="Key log to decrypt TLS, see `kafkascope tls-keys`; env: $SSLKEYLOGFILE; repeatable",
        **settings,
    )


_OPTIONS: Final = {
    "inputs": click.argument("inputs", metavar="INPUT...", nargs=-1, required=True),
    "filter_text": option(
        "-Y",
        "--filter",
        "filter_text",
        metavar="FILTER",
        section="Filter",
        shared=True,
        help="Display filter, see `kafkascope fields`",
        shell_complete=_filters,
    ),
    "count": option(
        "-c",
        "count",
        type=click.IntRange(min=1),
        metavar="N",
        section="Filter",
        shared=True,
        help="Stop after N exchanges",
    ),
    "begin": option(
        "--from",
        "begin",
        metavar="TIME",
        section="Time",
        shared=True,
        help="Start time: 12:03, a date, 30 (seconds from the start), -5m (before the end)",
    ),
    "end": option(
        "--to",
        "end",
        metavar="TIME",
        section="Time",
        shared=True,
        help="End time, not included (same formats as --from)",
    ),
    "time_format": option(
        "-t",
        "time_format",
        type=click.Choice(list(render_times.TIME_FORMATS)),
        metavar="FORMAT",
        section="Time",
        shared=True,
        default="a",
        show_default=True,
        help="Time format: a = local clock, u = UTC (ad, ud: with date), r = since start,"
        " d = delta from previous (dd: previous shown), e = epoch",
    ),
    "decode_as": option(
        "-d",
        "decode_as",
        multiple=True,
        metavar="tcp.port==N,kafka",
        section="Input",
        shared=True,
        help="Decode a port, or a range of ports (9000-9100), as Kafka; repeatable",
    ),
    "keylog": keylog_option(section="TLS", shared=True),
    "schema_folders": option(
        "--schemas",
        "schema_folders",
        multiple=True,
        metavar="DIR",
        section="Schemas",
        shared=True,
        help="Folder of schemas by ID (17.avsc, 17.proto, 17.json) or with an index.json;"
        " repeatable",
    ),
    "assigned": option(
        "--schema",
        "assigned",
        multiple=True,
        metavar="TOPIC[:key]=FILE[#MESSAGE]",
        section="Schemas",
        shared=True,
        callback=check_schemas,
        help="Schema for a topic whose records have no schema ID; repeatable",
    ),
    "registry": option(
        "--registry",
        metavar="URL",
        section="Schemas",
        shared=True,
        help="Schema registry to fetch missing schemas from",
    ),
    "registry_ca": option(
        "--registry-ca",
        type=FilePath(),
        metavar="FILE",
        section="Schemas",
        shared=True,
        help="CA bundle for the schema registry",
    ),
    "no_schemas": option(
        "--no-schemas",
        is_flag=True,
        section="Schemas",
        shared=True,
        help="Do not decode keys and values by schema",
    ),
    "output": option(
        "-o",
        "--output",
        metavar="FILE",
        section="Output",
        shared=True,
        help="Output file (default: stdout)",
    ),
    "form": format_option(FORMATS, section="Output", shared=True),
    "as_json": json_option(section="Output", shared=True),
    "raw": option(
        "--raw",
        is_flag=True,
        section="Output",
        shared=True,
        help="Do not prefix CSV cells that spreadsheets take for formulas with '",
    ),
    "columns": option(
        "--columns",
        metavar="A,B,C",
        section="Output",
        shared=True,
        help="Columns to print: names of columns, or any field of `kafkascope fields`",
    ),
    "wide": wide_option(section="Output", shared=True),
    "type_": option(
        "-T",
        "type_",
        type=click.Choice(["fields", *FORMATS]),
        metavar="TYPE",
        section="Output",
        shared=True,
        help="Output type as in tshark: fields (with -e), or a format",
    ),
    "fields": option(
        "-e",
        "fields",
        multiple=True,
        metavar="FIELD",
        section="Output",
        shared=True,
        help="Field to print with -T fields; repeatable",
        shell_complete=_fields,
    ),
    "field_options": option(
        "-E",
        "field_options",
        multiple=True,
        metavar="X=Y",
        section="Output",
        shared=True,
        help="Setting of -T fields: header, separator, occurrence, aggregator, quote",
    ),
    "sort": option(
        "--sort",
        metavar="COLUMN",
        section="Output",
        shared=True,
        help="Sort by a column, sizes and times largest first; +COLUMN or -COLUMN sets the order",
        shell_complete=_fields,
    ),
    "top": option(
        "-n",
        "top",
        type=click.IntRange(min=1),
        metavar="N",
        section="Output",
        shared=True,
        help="Print only the first N rows",
    ),
    "legs": option(
        "--legs",
        type=click.Choice(["client", "both"]),
        default="client",
        hidden=True,
        help="Sides of a recorded proxy to read",
    ),
    "quiet": option(
        "-q",
        "--quiet",
        is_flag=True,
        section="Messages",
        shared=True,
        help="Suppress diagnostic messages",
    ),
    "verbose": option(
        "-v",
        "--verbose",
        is_flag=True,
        section="Messages",
        shared=True,
        help="Show more diagnostic messages",
    ),
    "color": option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        metavar="WHEN",
        section="Output",
        shared=True,
        default="auto",
        show_default=True,
        help="Colors: auto (on terminals), always, never",
    ),
    "jobs": option(
        "--jobs",
        type=click.IntRange(0, 64),
        default=0,
        metavar="N",
        section="Input",
        shared=True,
        help="Number of worker processes for large files (default: number of CPU cores)",
    ),
    "plain": option(
        "--plain",
        is_flag=True,
        section="Output",
        shared=True,
        help="Print ASCII only",
    ),
    "no_progress": option(
        "--no-progress",
        is_flag=True,
        section="Messages",
        shared=True,
        help="Show no progress bar",
    ),
}
SCHEMA_OPTIONS: Final = tuple(_OPTIONS[name] for name in SCHEMAS)
_WRITING: Final = frozenset({"output", "form", "as_json", "raw", "columns"})
"""How rows are written. A command that names one of these for itself lists it with its own."""
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
