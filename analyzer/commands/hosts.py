"""`--hosts FILE`: what names of brokers stand for, where the capture does not show it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from kafkascope.analyzer.commands.help import option
from kafkascope.captures.model import Resolved

MAX_HOSTS_BYTES: Final = 16 << 20
"""Larger ones are something else."""


def _read(
    context: click.Context, parameter: click.Parameter, value: Path | None
) -> tuple[Resolved, ...]:
    from kafkascope.captures.packets.resolved import in_hosts_file

    if value is None:
        return ()
    try:
        with value.open("rb") as file:
            data = file.read(MAX_HOSTS_BYTES + 1)
    except OSError as error:
        raise click.BadParameter(f"{value}: {error.strerror}") from None
    if len(data) > MAX_HOSTS_BYTES:
        raise click.BadParameter(
            f"{value}: too large for a hosts file (limit: {MAX_HOSTS_BYTES >> 20} MB)"
        )
    try:
        return tuple(in_hosts_file(data.decode("utf-8", "replace")))
    except ValueError as error:
        raise click.BadParameter(f"{value}: {error}") from None


hosts_option = option(
    "--hosts",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_read,
    metavar="FILE",
    help="Addresses of broker names, in the format of /etc/hosts",
)
