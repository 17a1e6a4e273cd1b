"""Commands tell what small tables kept, without what another table has dropped."""

from pathlib import Path

import pytest

from tests.kit.run import run
from tests.matrix import each_nth
from tests.small_tables import SAMPLES, small_tables  # noqa: F401  (a fixture)

COMMANDS = ("check", "cluster", "clients", "groups", "groups --delivery", "producers")


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("path", each_nth(SAMPLES, 4), ids=lambda path: path.name)
def test_commands_tell_what_small_tables_kept(path: Path) -> None:
    for command in COMMANDS:
        result = run(*command.split(), path, "--jobs", "1")
        if not isinstance(result.exception, SystemExit):
            assert result.exception is None, command
        assert result.exit_code in (0, 1, 4), (command, result.output)
