"""`nowcastlab completion`: the script that lets a shell complete verbs, options and their values."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem, get_completion_class

VARIABLE = "_NOWCASTLAB_COMPLETE"  # click's own: the command's name in capitals


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    With it the Tab key completes verbs, options, scales, tables and the names of models. Load it in one session, or
    from the shell's start-up file.

    \b
    Examples:
      eval "$(nowcastlab completion bash)"                                             in ~/.bashrc
      eval "$(nowcastlab completion zsh)"                                              in ~/.zshrc
      nowcastlab completion fish > ~/.config/fish/completions/nowcastlab.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, "nowcastlab", VARIABLE).source())


def complete_models(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The names for a --model, of radar where a store is given. Takes as long as torch takes to import."""
    from nowcastlab.models import BASELINES, names

    known = names("hko7") if ctx.params.get("store") else (*names("hko7"), *names("mnist"))
    return [CompletionItem(name) for name in dict.fromkeys(known) if name.startswith(begun) and name not in BASELINES]
