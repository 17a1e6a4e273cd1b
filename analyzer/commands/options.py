"""The options that mean the same in every command that reads captures, and their combinations."""

from __future__ import annotations

import functools
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import click

from kafkascope.analyzer.commands.help import (
    Function,
    Option,
    complete_files,
    complete_from,
    option,
    refusing,
    setting,
)
from kafkascope.analyzer.commands.limits import LIMITS
from kafkascope.analyzer.commands.tables import format_option, json_option, wide_option
from kafkascope.analyzer.reading.options import FORMATS, ReadOptions, SchemaOptions
from kafkascope.analyzer.render import times as render_times
from kafkascope.captures.limits import LIMITS as CAPTURE_LIMITS
from kafkascope.captures.model import Resolved
from kafkascope.captures.packets.resolved import in_hosts_file
from kafkascope.extras import require
from kafkascope.times import zone_named

DECODE_AS: Final = re.compile(r"tcp\.port\s*==\s*(\d{1,5})(?:\s*[-:]\s*(\d{1,5}))?\s*,\s*(\w+)\Z")
MAX_PORTS: Final = 65_536
NO_HELPS: Final[Mapping[str, str]] = MappingProxyType({})
SCHEMAS: Final = ("schema_folders", "assigned", "registry", "registry_ca", "no_schemas")
"""The options of `SchemaOptions`, in its order."""


class FilePath(click.Path):  # type: ignore[type-arg,unused-ignore]
    """A file: no device without an end, as `/dev/zero` is. OpenSSL, which reads certificates, and
    others look for the end of a line as long as there are bytes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        try:
            status = os.stat(path)  # noqa: PTH116 - it may be of any type
        except OSError:
            return path  # whoever reads it says why that fails
        if stat.S_ISCHR(status.st_mode) and not os.path.samefile(path, os.devnull):  # noqa: PTH121
            self.fail(f'"{value}" is a device, not a file', param, ctx)
        if status.st_size > (most := CAPTURE_LIMITS.small_file_bytes):
            self.fail(f'"{value}" is larger than {most >> 20} MB', param, ctx)
        return path


FILE: Final = FilePath(path_type=Path, exists=True, dir_okay=False)


def _hosts(
    context: click.Context, parameter: click.Parameter, value: Path | None
) -> tuple[Resolved, ...]:
    if value is None:
        return ()
    try:
        with value.open("rb") as file:
            data = file.read(LIMITS.hosts_bytes + 1)
    except OSError as error:
        raise click.BadParameter(f"{value}: {error.strerror}") from None
    if len(data) > LIMITS.hosts_bytes:
        raise click.BadParameter(
            f"{value}: too large for a hosts file (limit: {LIMITS.hosts_bytes >> 20} MB)"
        )
    try:
        return tuple(in_hosts_file(data.decode("utf-8", "replace")))
    except ValueError as error:
        raise click.BadParameter(f"{value}: {error}") from None


hosts_option = setting(
    "--hosts",
    "FILE",
    "Addresses of broker names, in the format of /etc/hosts",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_hosts,
)


def zone_of(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str:
    """Return the name of a time zone, which is known; empty for none."""
    if value:
        with refusing(ValueError):
            zone_named(value)
    return value or ""


def check_schemas(
    ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the values of `--schema`, whose files can be read."""
    if value and not ctx.resilient_parsing:
        from kafkascope.analyzer.reading.schemas import assigned_schemas

        assigned_schemas(value)
    return value


def known_release(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from kafkascope.dissectors.reference.releases import known_release as checked

    with refusing(ValueError):
        return checked(value)


def _releases() -> Iterable[str]:
    from kafkascope.dissectors.reference.releases import RELEASES

    return reversed(RELEASES)


complete_releases = complete_from(_releases)


def input_options(function: Callable[..., int]) -> Callable[..., int]:
    """INPUT... and all common options, given to the command as `options`."""
    return _with(function, frozenset(_OPTIONS))


def formatting_options(*formats: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Declare INPUT... and all common options; `--format` knows more formats."""

    def declare(function: Callable[..., int]) -> Callable[..., int]:
        given = _with(function, frozenset(_OPTIONS) - {"form"}, declared=["form"])
        return format_option((*FORMATS, *formats), section="Output", shared=True)(given)

    return declare


def reading_options(
    *more: str,
    without: Collection[str] = (),
    helps: Mapping[str, str] = NO_HELPS,
    formats: Sequence[str] = FORMATS,
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Declare INPUT... and the options for reading and messages; `more`: other common options that
    the command uses (names as in `_OPTIONS`): none is taken and ignored. `without`: those that it
    does not use, or declares itself with another meaning. `helps`: help of options that differs
    from other commands. `formats`: values of `--format`."""
    chosen = frozenset(_OPTIONS) - _SHOWING - {*without} | {*more}
    own = _WRITING.intersection(more)
    return lambda function: _with(function, chosen, own=own, helps=helps, formats=formats)


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
    formats: Sequence[str] = FORMATS,
) -> Callable[..., int]:
    """Add the `chosen` options. `declared`: those that the caller adds itself. `own`: those that
    the help lists with the options of the command."""

    @functools.wraps(function)
    def command(**given: Any) -> int:
        common = {name: given.pop(name) for name in (*chosen, *declared)}
        return function(options=_read_options(common), **given)

    for name in reversed(_OPTIONS):
        if name in chosen:
            command = _OPTIONS[name](command)
            made: Option = command.__click_params__[-1]  # type: ignore[attr-defined]
            if name in own:
                made.shared = False
            made.help = helps.get(name, made.help)
            if name == "form":
                made.type = click.Choice(formats)
    return command


def _read_options(given: dict[str, Any]) -> ReadOptions:
    """Return the options; those that a command does not have are absent, see `reading_options`."""
    take = given.pop
    kind, form = take("type_", None), take("form", None)
    if given.get("fields") and kind not in (None, "fields"):
        raise click.UsageError("-e needs -T fields")
    if kind == "fields" and not given["fields"]:
        raise click.UsageError("-T fields needs at least one -e FIELD")
    if kind in FORMATS:
        form = form or kind
    columns = (take("columns", None) or "").split(",")
    return ReadOptions(
        filter_text=spelled(take("filter_text") or ""),
        begin=_mark("--from", take("begin", None)),
        end=_mark("--to", take("end", None)),
        ports=frozenset(port for text in take("decode_as") for port in ports_of(text)),
        form="jsonl" if take("as_json", False) else form or "table",
        columns=tuple(part.strip() for part in columns if part.strip()),
        both_legs=take("legs") == "both",
        keylog=key_logs(take("keylog", ())),
        progress=not take("no_progress"),
        schemas=SchemaOptions(
            **{
                field: take(name)
                for field, name in zip(SchemaOptions._fields, SCHEMAS, strict=True)
                if name in given
            }
        ),
        **given,
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
    with refusing(ValueError, option=option, text=text):
        return render_times.mark(text.strip())


def spare_pandas() -> None:
    """Write tables without pandas, where the program owns this process, rather than a caller of its
    commands."""
    context = click.get_current_context(silent=True)
    if context is not None and context.find_root().obj is True:
        from kafkascope.analyzer.pipeline.tables.arrow import spare_pandas

        spare_pandas()


def key_logs(given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths of `--keylog` options; `env` becomes the path in SSLKEYLOGFILE."""
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
    """The ports of a `-d` option; `UsageError`."""
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
    from kafkascope.analyzer.filter.saved import names_at, read_saved, without_names
    from kafkascope.analyzer.findings import RULES

    found = names_at(incomplete, len(incomplete), read_saved()[0])
    if found is None:
        found = complete(without_names(incomplete), findings=RULES)
    return [incomplete[: found.begin] + item.text for item in found.items]


def _fields(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from kafkascope.analyzer.filter.fields import all_names

    front = "kafka." if incomplete.lower().startswith("kafka.") else ""
    names = (front + name for name in all_names())
    return [name for name in names if name.startswith(incomplete.lower())]


def keylog_option(**settings: Any) -> Callable[[Function], Function]:
    text = "Key log to decrypt TLS, see `kafkascope tls-keys`; env: $SSLKEYLOGFILE"
    return setting("--keylog", "FILE", text, multiple=True, **settings)


def decode_as_option(**settings: Any) -> Callable[[Function], Function]:
    text = "Decode a port, or a range of ports (9000-9100), as Kafka"
    return setting("-d decode_as", "tcp.port==N,kafka", text, multiple=True, **settings)


legs_option = option(
    "--legs",
    type=click.Choice(["client", "both"]),
    default="client",
    hidden=True,
    help="Sides of a recorded proxy to read",
)


def _shared(section: str, *declaration: str, **settings: Any) -> Callable[[Function], Function]:
    return setting(*declaration, section=section, shared=True, **settings)


_filter, _time, _input, _schemas, _output, _messages = (
    functools.partial(_shared, section)
    for section in ("Filter", "Time", "Input", "Schemas", "Output", "Messages")
)
_OPTIONS: Final = {
    "inputs": click.argument(
        "inputs", metavar="INPUT...", nargs=-1, required=True, shell_complete=complete_files
    ),
    "filter_text": _filter(
        "-Y --filter filter_text",
        "FILTER",
        "Display filter, see `kafkascope fields`",
        shell_complete=_filters,
    ),
    "count": _filter("-c count", "N", "Stop after N exchanges", type=click.IntRange(min=1)),
    "begin": _time(
        "--from begin",
        "TIME",
        "Start time: 12:03, a date, 30 (seconds from the start), -5m (before the end)",
    ),
    "end": _time("--to end", "TIME", "End time, not included (same formats as --from)"),
    "time_format": _time(
        "-t time_format",
        "FORMAT",
        "Time format: a = local clock, u = UTC (ad, ud: with date), r = since start,"
        " d = delta from previous (dd: previous shown), e = epoch",
        type=click.Choice(list(render_times.TIME_FORMATS)),
        default="a",
    ),
    "decode_as": decode_as_option(section="Input", shared=True),
    "zone": _input(
        "--time-zone zone",
        "ZONE",
        "Time zone of request logs: Europe/Berlin, +05:30 (default: as the line or its container"
        " says, else local)",
        callback=zone_of,
    ),
    "keylog": keylog_option(section="TLS", shared=True),
    "schema_folders": _schemas(
        "--schemas schema_folders",
        "DIR",
        "Folder of schemas by ID (17.avsc, 17.proto, 17.json) or with an index.json",
        multiple=True,
        type=click.Path(exists=True, file_okay=False),
    ),
    "assigned": _schemas(
        "--schema assigned",
        "TOPIC[:key]=FILE[#MESSAGE]",
        "Schema for a topic whose records have no schema ID",
        multiple=True,
        callback=check_schemas,
    ),
    "registry": _schemas("--registry", "URL", "Schema registry to fetch missing schemas from"),
    "registry_ca": _schemas(
        "--registry-ca", "FILE", "CA bundle for the schema registry", type=FilePath()
    ),
    "no_schemas": _schemas("--no-schemas", "", "Do not decode keys and values by schema"),
    "output": _output("-o --output", "FILE", "Output file (default: stdout)"),
    "form": format_option(FORMATS, section="Output", shared=True),
    "as_json": json_option(section="Output", shared=True),
    "raw": _output(
        "--raw", "", "Do not prefix CSV cells that spreadsheets take for formulas with '"
    ),
    "columns": _output(
        "--columns",
        "A,B,C",
        "Columns to print: names of columns, or any field of `kafkascope fields`",
    ),
    "wide": wide_option(section="Output", shared=True),
    "type_": _output(
        "-T type_",
        "TYPE",
        "Output type as in tshark: fields (with -e), or a format",
        type=click.Choice(["fields", *FORMATS]),
    ),
    "fields": _output(
        "-e fields",
        "FIELD",
        "Field to print with -T fields",
        multiple=True,
        shell_complete=_fields,
    ),
    "field_options": option(
        "-E",
        "field_options",
        multiple=True,
        metavar="X=Y",
        help="Setting of -T fields: header, separator, occurrence, aggregator, quote",
        section="Output",
        shared=True,
    ),
    "sort": _output(
        "--sort",
        "COLUMN",
        "Sort by a column, sizes and times largest first; +COLUMN or -COLUMN sets the order",
        shell_complete=_fields,
    ),
    "top": _output("-n top", "N", "Print only the first N rows", type=click.IntRange(min=1)),
    "legs": legs_option,
    "quiet": _messages("-q --quiet", "", "Suppress diagnostic messages"),
    "verbose": _messages("-v --verbose", "", "Show more diagnostic messages"),
    "color": _output(
        "--color",
        "WHEN",
        "Colors: auto (on terminals), always, never",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
    ),
    "jobs": _input(
        "--jobs",
        "N",
        "Number of worker processes for large files (default: number of CPU cores)",
        type=click.IntRange(0, 64),
        default=0,
    ),
    "plain": _output("--plain", "", "Print ASCII only"),
    "no_progress": _messages("--no-progress", "", "Show no progress bar"),
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
