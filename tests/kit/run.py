"""Run commands in this process: a program takes a third of a second to start."""

from collections.abc import Container
from typing import Any

import orjson
from click.testing import CliRunner, Result

from kafkascope.tui.cli import main


def run(*words: object, codes: Container[int] | None = None, **more: Any) -> Result:
    """Run `kafkascope` with these words; it has to end with one of the exit codes."""
    done = CliRunner().invoke(main, [str(word) for word in words], **more)
    assert codes is None or done.exit_code in codes, done.output
    return done


def output(*words: object, codes: Container[int] = (0,), **more: Any) -> str:
    """Return what a command prints on stdout."""
    return run(*words, codes=codes, **more).stdout


def objects(*words: object, codes: Container[int] = (0,), **more: Any) -> list[dict[str, Any]]:
    """Return the JSON objects that a command prints, one a line."""
    return lines_of(run(*words, codes=codes, **more))


def lines_of(done: Result) -> list[dict[str, Any]]:
    """Return the JSON objects that a command printed, one a line."""
    return [orjson.loads(line) for line in done.stdout.splitlines()]
