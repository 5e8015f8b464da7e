"""What a newcomer reads: --help of every command there is, found by walking the tree of commands."""

from __future__ import annotations

import importlib
import os
import pty
import re
import runpy
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from data_pipeline.__main__ import main_group as pipeline_group
from nowcastlab.cli import VERBS, main_group
from nowcastlab.cli.verbs import EXIT_CODES, examples

ROOTS = {"nowcastlab": main_group, "python -m data_pipeline": pipeline_group}
BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]


def tree(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Every command below this one, groups too, with the words that call it."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield f"{path} {name}", below
            yield from tree(f"{path} {name}", below)


COMMANDS = {path: command for root, group in ROOTS.items() for path, command in tree(root, group)}


SWEEP_FILES = {"python sweeps/hko7_benchmark.py": "sweep", "python sweeps/search.py": "search"}


def command_of(path: str) -> click.Command:
    """The command that a sweep file makes of itself, caught before it is run."""
    module = importlib.import_module(f"nowcastlab.cli.{SWEEP_FILES[path]}")
    made: list[click.Command] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "run", made.append)
        runpy.run_path(str(ROOT / path.split()[1]), run_name="__main__")
    return made[0]


def help_of(path: str, command: click.Command) -> str:
    return CliRunner().invoke(command, ["--help"], prog_name=path, catch_exceptions=False).output


@pytest.mark.parametrize("path", COMMANDS)
def test_help_opens_with_a_sentence_and_ends_with_examples(path: str) -> None:
    text = (COMMANDS[path].help or "").strip()
    first, *middle, last = [part.strip() for part in text.split("\n\n")]
    assert first.endswith((".", "?")), f"{path}: {first!r} is no sentence"
    assert last.removeprefix("\b").strip().startswith("Examples:"), f"{path} --help does not end with Examples"
    assert not any("Examples:" in part for part in middle)


@pytest.mark.parametrize("root", ROOTS)
def test_what_a_verb_does_is_said_to_the_end_of_the_sentence(root: str) -> None:
    listed = " ".join(help_of(root, ROOTS[root]).split())
    for path, command in COMMANDS.items():
        if path.removeprefix(root).count(" ") == 1 and path.startswith(root):
            assert command.get_short_help_str(limit=1000) in listed


@pytest.mark.parametrize("path", [*COMMANDS, *SWEEP_FILES])
def test_no_number_in_a_range_may_be_nan(path: str) -> None:
    """click's own range lets it through."""
    command = command_of(path) if path in SWEEP_FILES else COMMANDS[path]
    for option in command.params:
        if isinstance(option.type, click.FloatRange):
            with pytest.raises(click.BadParameter, match="nan is not a finite number"):
                option.type.convert("nan", option, None)


@pytest.mark.parametrize("path", COMMANDS)
def test_examples_are_of_the_command_itself(path: str) -> None:
    found = examples(COMMANDS[path])
    assert any(path in line for line in found), f"{path} --help has no example of {path}: {found}"


@pytest.mark.parametrize("path", COMMANDS)
def test_help_shows_every_option_that_is_not_hidden(path: str) -> None:
    command = COMMANDS[path]
    said = help_of(path, command)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert max(parameter.opts, key=len) in said


@pytest.mark.parametrize("path", [*COMMANDS, *SWEEP_FILES])
def test_every_option_says_in_a_sentence_what_it_is(path: str) -> None:
    """Not only what it is "of": who reads one line of the help has not read the others."""
    for parameter in (COMMANDS[path] if path in COMMANDS else command_of(path)).params:
        if isinstance(parameter, click.Option):
            said = re.sub(r" +\[default: [^]]+\]$", "", parameter.help or "")
            sentence = re.fullmatch(r"(?!Of |For |In )[A-Z]\S*( \S+){2,}\.", said)
            assert sentence, f"{path} {parameter.opts[0]}: {parameter.help!r} does not say what it is"


@pytest.mark.parametrize("root", ROOTS)
def test_a_root_lists_each_verb_with_an_example(root: str) -> None:
    said = help_of(root, ROOTS[root])
    for path, command in tree(root, ROOTS[root]):
        if path.count(" ") == root.count(" ") + 1:
            name = path.removeprefix(f"{root} ")
            example = rf" +\$ {re.escape(examples(command)[0])}$"
            assert re.search(rf"^  {re.escape(name)} +\S.*\n(?: {{8,}}[^\s$].*\n)*{example}", said, re.M), path


def test_nowcastlab_help_teaches_the_usual_way_and_the_exit_codes() -> None:
    said = help_of("nowcastlab", main_group)
    for step in ("data_pipeline synth", "sweeps/links_vs_kernel.py", "nowcastlab ui", "nowcastlab report", "docs/"):
        assert step in said
    for code, meaning in EXIT_CODES.items():
        assert f"{code:>3}  {meaning}" in said


def test_help_waits_for_nothing_heavy() -> None:
    """All verbs are imported for --help, and none of them may bring torch, Ray, MLflow or matplotlib along."""
    code = (
        "import importlib, sys; from nowcastlab.cli import VERBS; from data_pipeline.__main__ import VERBS as more;"
        "[importlib.import_module(m) for m in (*VERBS.values(), *more.values())];"
        "print([m for m in ('torch', 'ray', 'mlflow', 'matplotlib', 'cv2', 'xarray') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_verb_is_answered_with_the_list() -> None:
    result = CliRunner().invoke(main_group, ["tarin"])
    assert result.exit_code == 2
    assert all(verb in result.output for verb in VERBS)


# --- shell completion, as a shell asks for it


def completed(words: str) -> set[str]:
    asked = {"_NOWCASTLAB_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    done = subprocess.run([BIN / "nowcastlab"], env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    return {line.split(",", 1)[1] for line in done.stdout.splitlines()}


def test_verbs_and_choices_are_completed() -> None:
    assert completed("nowcastlab tr") == {"train"}
    assert completed("nowcastlab train --scale ") == {"demo", "laptop", "paper"}


def test_models_are_completed() -> None:
    assert {"trajgru", "traj-l13"} <= completed("nowcastlab train --model traj")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_printed(shell: str) -> None:
    result = CliRunner().invoke(main_group, ["completion", shell])
    assert result.exit_code == 0
    assert f"_NOWCASTLAB_COMPLETE={shell}_complete" in result.output


def test_bash_takes_the_completion_script() -> None:
    script = f'eval "$({BIN / "nowcastlab"} completion bash)"; complete -p nowcastlab'
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True)
    assert "-F _nowcastlab_completion" in done.stdout


# --- colours and bars


COLOURFUL = """
import click
from nowcastlab.cli.verbs import run
from nowcastlab.progress import progress

@click.command()
def command():
    click.secho("red", fg="red")
    for _ in progress(range(3), label="ingest", unit="day"):
        pass

run(command)
"""


def on_a_terminal(code: str, **environment: str) -> str:
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, 80))  # a bar has no place in a terminal without columns
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=follower, stderr=follower, env={**os.environ, **environment}
    )
    os.close(follower)
    said = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:  # Linux's way of saying that the other end is closed
            break
        if not part:
            break
        said += part
    os.close(leader)
    assert process.wait() == 0
    return said.decode()


def test_a_terminal_gets_colours_and_bars() -> None:
    said = on_a_terminal(COLOURFUL, NO_COLOR="")
    assert "\x1b[31mred" in said
    assert "ingest: 100%" in said


def test_no_color_is_honoured() -> None:
    assert "\x1b[31m" not in on_a_terminal(COLOURFUL, NO_COLOR="1")


def test_a_pipe_gets_neither() -> None:
    done = subprocess.run([sys.executable, "-c", COLOURFUL], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("red\n", "")
