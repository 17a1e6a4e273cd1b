"""The program that `spark-submit` runs: the command without the rest of the command line."""

from __future__ import annotations

import sys

import click

from kafkascope.analyzer.commands.failures import explain
from kafkascope.analyzer.commands.spark import spark
from kafkascope.analyzer.terminal import say


def main() -> None:
    """`kafkascope spark`, on the session of spark-submit; exits as the command does."""
    args = sys.argv[1:]
    if "--engine" not in args:
        args += ["--engine", "spark"]
    try:
        code = spark.main(args, prog_name="kafkascope spark", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except Exception as error:
        found = explain(error)
        if found is None:
            raise
        say(found.text, bare=True)
        sys.exit(found.code)
    sys.exit(code)
