"""Options, commands and groups of commands, whose help has sections.

`--help` explains the options of the command itself, and only names those that it shares with other
commands; `--help-all` explains both. The declaration of an option has its section, and whether it
is shared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from kafkascope.analyzer.terminal import document
from kafkascope.analyzer.text import packed

Function = TypeVar("Function", bound=Callable[..., Any])
OPTIONS: Final = "Options"
"""The default section."""
ALL: Final = "kafkascope.help_all"
SHARED: Final = "Shared options (--help-all explains them)"
TSHARK_OPTIONS: Final = {
    "-r": "name files without an option: kafkascope ls FILE",
    "-i": "to capture: kafkascope -i IFACE, or kafkascope capture -i IFACE -w FILE",
    "-w": "to write packets: kafkascope cut INPUT -o FILE",
    "-V": "kafkascope show prints all fields, kafkascope --version the version",
    "-x": "to print bytes: kafkascope show INPUT NUMBER --hex",
    "-z": "for statistics: kafkascope stats",
}
"""Replacements for options of tshark that a command lacks."""
CLICK_EXTRA: Final = re.compile(r"  \[([^\[\]]+)\]\Z")
"""Suffix that click appends to a help text: the default, a range, "required"."""


class Option(click.Option):
    """An option with a section. A shared one means the same in every command that has it."""

    def __init__(
        self, *names: Any, section: str = OPTIONS, shared: bool = False, **settings: Any
    ) -> None:
        super().__init__(*names, **settings)
        self.section = section
        self.shared = shared

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return names and text; "(default: X)" ends the text."""
        record = super().get_help_record(ctx)
        return record and (record[0], CLICK_EXTRA.sub(_only_default, record[1]))

    def summary(self) -> str:
        """Return the shortest name with its value."""
        name = min(self.opts, key=len)
        return name if self.is_flag or not self.metavar else f"{name} {self.metavar}"

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the values that begin with the text; the shell itself completes FILE and DIR."""
        values = super().shell_complete(ctx, incomplete)
        kind = {"FILE": "file", "DIR": "dir"}.get(self.metavar or "")
        return [CompletionItem(incomplete, kind)] if kind and not values else values


def complete_files(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete an argument by names of files, as click does only for `click.Path`."""
    return [CompletionItem(incomplete, "file")]


def complete_from(values: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    """Return the completion of a value, or of the last one of a comma-separated list."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        front, comma, last = incomplete.rpartition(",")
        return [
            front + comma + value for value in values() if value.lower().startswith(last.lower())
        ]

    return complete


def complete_interfaces(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    import socket

    names = ("any", *(name for _, name in socket.if_nameindex()))
    return [name for name in names if name.startswith(incomplete)]


def _only_default(extra: re.Match[str]) -> str:
    # The error that refuses other numbers shows a range such as 1<=x<=64.
    parts = [part for part in extra[1].split("; ") if part.startswith("default: ")]
    return "".join(f" ({part})" for part in parts)


def option(*names: str, **settings: Any) -> Callable[[Function], Function]:
    """Declare an `Option`."""
    return click.option(*names, cls=Option, **settings)


def setting(names: str, metavar: str, text: str, **settings: Any) -> Callable[[Function], Function]:
    """Declare an option by its names, the placeholder of its value ("": a flag), and its help. The
    help ends with the default, and with "repeatable"."""
    settings.setdefault("show_default", bool(settings.get("default")))
    text += "; repeatable" * settings.get("multiple", False)
    kind = {"metavar": metavar} if metavar else {"is_flag": True}
    return option(*names.split(), help=text, **kind, **settings)


def flags(
    destination: str, helps: dict[str, str], **settings: Any
) -> Callable[[Function], Function]:
    """Declare flags, each of which sets the parameter `destination` to its own name."""

    def declare(function: Function) -> Function:
        for name, text in reversed(helps.items()):
            flag = option(f"--{name}", destination, flag_value=name, help=text, **settings)
            function = flag(function)
        return function

    return declare


@contextmanager
def refusing(
    *errors: type[Exception], option: str | None = None, text: str | None = None
) -> Iterator[None]:
    """Turn errors of these types into usage errors about `option`; None: the option whose callback
    runs. `text`: the value, if the error does not name it."""
    try:
        yield
    except errors as error:
        reason = getattr(error, "sentence", None) or str(error)
        reason = reason if text is None else f'"{text}": {reason}'
        raise click.BadParameter(reason, param_hint=option) from None


def _explain_all(ctx: click.Context, parameter: click.Parameter, given: bool) -> None:
    if given and not ctx.resilient_parsing:
        ctx.meta[ALL] = True
        document(ctx.get_help())
        ctx.exit()


HELP_ALL: Final = Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_explain_all,
    help="Show this help with all shared options, and exit",
)


class _Context(click.Context):
    """A context that allows for a command without a name: the default command of a group."""

    @property
    def command_path(self) -> str:
        return super().command_path.rstrip()


class _BaseCommand(click.Command):
    """Common behaviour of commands and groups."""

    context_class = _Context

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "Show this help and exit"
        return option


class Command(_BaseCommand):
    """A command whose help has sections. `also`: arguments after the inputs, in the usage line."""

    def __init__(self, *args: Any, also: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.also = also

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; the error for an option of tshark names the replacement."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if (instead := TSHARK_OPTIONS.get(name := error.option_name)) is None:
                raise
            text = f"{error.message.removesuffix('.')}; {instead}"
            raise click.NoSuchOption(name, text, error.possibilities, ctx) from None

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return [*pieces, self.also] if self.also else pieces

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        parameters = super().get_params(ctx)
        return [*parameters, HELP_ALL] if has_shared(self) else parameters

    def get_short_help_str(self, limit: int = 45) -> str:
        return super().get_short_help_str(limit).removesuffix(".")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections: own options, then the shared ones in short or in full."""
        own: dict[str, list[click.Parameter]] = {}
        shared: dict[str, list[Option]] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Argument) or getattr(parameter, "hidden", False):
                continue
            if isinstance(parameter, Option) and parameter.shared:
                shared.setdefault(parameter.section, []).append(parameter)
            else:
                own.setdefault(getattr(parameter, "section", OPTIONS), []).append(parameter)
        for title, explained in shared.items() if ALL in ctx.meta else ():
            own.setdefault(title, []).extend(explained)
        for title, options in own.items():
            records = [option.get_help_record(ctx) for option in options]
            with formatter.section(title):
                formatter.write_dl([record for record in records if record is not None])
        if shared and ALL not in ctx.meta:
            _summarize(shared, formatter)


def has_shared(command: click.Command) -> bool:
    """Return whether a command has options that only `--help-all` explains."""
    return any(isinstance(option, Option) and option.shared for option in command.params)


def _summarize(shared: dict[str, list[Option]], formatter: click.HelpFormatter) -> None:
    width = max(map(len, shared)) + 2
    with formatter.section(SHARED):
        margin = " " * formatter.current_indent
        for title, options in shared.items():
            words = [f"{option.summary()}," for option in options]
            words[-1] = words[-1].removesuffix(",")
            lines = packed(
                words,
                formatter.width,
                indent=f"{margin}{title:<{width}}",
                hanging=margin + " " * width,
            )
            formatter.write("".join(f"{line}\n" for line in lines))


def command(name: str | None = None, **settings: Any) -> Callable[[Any], Command]:
    return click.command(name, cls=Command, **settings)


class CommandGroup(_BaseCommand, click.Group):
    """A group of commands. `default`: the hidden command that runs if the first argument names no
    other command; its options are those of the group."""

    command_class = Command

    def __init__(self, *args: Any, default: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.default = default

    @property
    def _default(self) -> click.Command | None:
        return self.commands.get(self.default)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        parameters = super().get_params(ctx)
        shared = self._default is not None and has_shared(self._default)
        return [*parameters, HELP_ALL] if shared else parameters

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command before arguments that begin with no other command."""
        own = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        if self.default and (not args or args[0] not in {*self.commands, *own}):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; the error for an unknown one lists all."""
        if args and self.get_command(ctx, args[0]) is None:
            commands = self.list_commands(ctx)
            shown = ", ".join(name for name in commands if not self.commands[name].hidden)
            ctx.fail(f'there is no "{args[0]}": choose from {shown}')
        name, command, args = super().resolve_command(ctx, args)
        return None if name == self.default else name, command, args

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        if self._default is None:
            return super().collect_usage_pieces(ctx)
        return self._default.collect_usage_pieces(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        if self._default is not None:
            self._default.format_options(ctx, formatter)
        else:
            Command.format_options(self, ctx, formatter)  # type: ignore[arg-type]
