"""A command whose verbs are modules, imported when used: `--help` need not wait for torch.

A verb's module holds one `command` (a click command or group) whose help opens with one line and ends with examples.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

import click

from nowcastlab.errors import NowcastlabError


class VerbGroup(click.Group):
    def __init__(self, *, verbs: Mapping[str, str], version: str | None = None, **kwargs: Any) -> None:
        super().__init__(context_settings={"help_option_names": ["-h", "--help"]}, **kwargs)
        self._modules = verbs
        if version:
            click.version_option(version, prog_name=self.name)(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._modules)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        module = self._modules.get(name)
        return importlib.import_module(module).command if module else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self._modules and not args[0].startswith("-"):
            ctx.fail(f"No command '{args[0]}'. The commands are: {', '.join(self._modules)}.")
        return super().resolve_command(ctx, args)


def run(command: click.Command) -> None:
    """Run a command; a user's mistake ends in its message and its exit code, Ctrl-C in 130."""
    try:
        command(standalone_mode=False)
    except click.exceptions.Exit as exit_:
        sys.exit(exit_.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except NowcastlabError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
