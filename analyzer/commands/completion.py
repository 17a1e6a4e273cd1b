"""`kafkascope completion`: the script that teaches a shell our commands and options."""

from __future__ import annotations

import click

from kafkascope.analyzer.commands.help import command
from kafkascope.analyzer.terminal import document


@command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print the completion script of a shell.

    \b
      eval "$(kafkascope completion bash)"           # in ~/.bashrc
      eval "$(kafkascope completion zsh)"            # in ~/.zshrc
      kafkascope completion fish > ~/.config/fish/completions/kafkascope.fish
    """
    from click.shell_completion import ShellComplete, get_completion_class

    found = get_completion_class(shell)
    assert found is not None  # click has the three
    script = found(ctx.find_root().command, {}, "kafkascope", "_KAFKASCOPE_COMPLETE")
    # Without the check of the running shell's version that the bash class adds.
    document(ShellComplete.source(script))
    return 0
