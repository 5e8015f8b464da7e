"""A command whose verbs are modules, imported when used: `--help` need not wait for torch.

A verb's module holds one `command` (a click command or group) whose help opens with one line and ends with examples.
"""

from __future__ import annotations

import errno
import importlib
import math
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource

from nowcastlab.errors import NowcastlabError, StoreError

# What the commands end with; nowcastlab/errors.py says which error is which.
EXIT_CODES = {
    0: "done",
    1: "Ray does not answer, `doctor` or `cluster check` found a problem, or a traceback: our error, please report it",
    2: "an option or a setting that cannot work",
    3: "a store or file that is not there, damaged, busy or cannot be written",
    4: "a run, or a sweep's trials, that failed; the same command goes on",
    5: "the tracking server or database does not answer, or has no such sweep",
    6: "runs that must not stand in one table",
    130: "stopped with Ctrl-C; the same command goes on",
}
EXAMPLES = "Examples:"
SCALE_HELP = "Size of the run: demo (minutes), laptop (an hour or more), paper (GPUs)."
WHOLE_SENTENCE = 1000  # characters: click would cut it at the line's end


class VerbGroup(click.Group):
    """`sections` puts verbs under titles, in the order a newcomer needs them; verbs in none follow under their own."""

    def __init__(
        self,
        *,
        verbs: Mapping[str, str],
        version: str | None = None,
        sections: Mapping[str, Sequence[str]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(context_settings={"help_option_names": ["-h", "--help"]}, **kwargs)
        self._modules = verbs
        self._sections = sections or {}
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each verb with what it does and how it is called: the first example of its own help."""
        width = max(map(len, self._modules)) + 2
        for title, names in self._titled():
            with formatter.section(title):
                left = " " * formatter.current_indent
                for name in names:
                    verb = self.get_command(ctx, name)
                    assert verb is not None
                    room = max(20, formatter.width - len(left) - width)
                    sentence = verb.get_short_help_str(limit=WHOLE_SENTENCE)
                    for i, line in enumerate(textwrap.wrap(sentence, room, break_on_hyphens=False)):
                        formatter.write(f"{left}{'' if i else name:<{width}}{line}\n")
                    if example := next(iter(examples(verb)), None):
                        formatter.write(f"{left}{'':<{width}}$ {example}\n")

    def _titled(self) -> Iterator[tuple[str, list[str]]]:
        for title, names in self._sections.items():
            yield title, [name for name in names if name in self._modules]
        placed = {name for names in self._sections.values() for name in names}
        rest = [name for name in self._modules if name not in placed]
        if rest:
            yield ("Also" if placed else "Commands"), rest


def examples(command: click.Command) -> list[str]:
    """The commands under a help's Examples, without the words behind them."""
    block = (command.help or "").partition(EXAMPLES)[2].replace("\\\n", " ")  # a command may go on in the next line
    return [re.split(r"(?<=\S)   +(?=\w)", line.strip())[0] for line in block.splitlines() if line.strip()]


def given(ctx: click.Context, *options: str) -> list[str]:
    """Which of these options the user wrote, whatever their values: to refuse those that would be ignored."""
    written = ParameterSource.COMMANDLINE
    params = [param for param in ctx.command.params if ctx.get_parameter_source(param.name or "") is written]
    return [option for option in options if any(option in param.opts for param in params)]


class FiniteRange(click.FloatRange):
    """click's own lets `nan` through, which is neither below a bound nor above one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def exit_code_help() -> str:
    return "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())


def run(command: click.Command) -> None:
    """Run a command; a user's mistake ends in its message and its exit code, Ctrl-C in 130.

    Colours are for terminals, and not for those who set NO_COLOR.
    """
    try:
        # What `ctx.exit` was given comes back; verbs return nothing else.
        if code := command(standalone_mode=False, color=False if os.environ.get("NO_COLOR") else None):
            sys.exit(code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except BrokenPipeError:  # `... | head` has seen enough
        _leave_stdout()
        sys.exit(1)
    except OSError as error:  # an output that cannot be written: a file where a folder should be, a full disk
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)  # which names no file when it is met in writing
        if error.filename is None and not full:
            raise
        if error.filename is None:
            _leave_stdout()
        where = f"{error.filename}: " if error.filename is not None else ""
        click.echo(f"error: {where}{error.strerror}.", err=True)
        sys.exit(StoreError.exit_code)
    except NowcastlabError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)


def _leave_stdout() -> None:
    """Where standard output takes no more, Python would try again at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
