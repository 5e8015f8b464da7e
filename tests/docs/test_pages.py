"""README and docs: every link leads somewhere, every block runs.

A block in ```sh or ```python is run, in order, in one scratch folder a page. A comment before it may say otherwise:

    <!-- file: NAME -->       the block is a file of that name, for the blocks after it
    <!-- not run: REASON -->  it would take hours or a cloud; its commands and their options must exist all the same
    <!-- typed by: TEST -->   that test types it
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from data_pipeline.__main__ import main_group as pipeline_group
from nowcastlab import __version__
from nowcastlab.cli import main_group
from nowcastlab.cli.verbs import examples
from nowcastlab.config import with_changes
from nowcastlab.sweep import run_sweep

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"^(?:<!-- (?P<mark>[a-z ]+): (?P<value>.*?) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.M)

# Commands of others in blocks that are not run, whose options are not ours to check.
FOREIGN = {
    ".",
    "cd",
    "export",
    "git",
    "pip",
    "ssh",
    "ssh-keygen",
    "gcloud",
    "pdflatex",
    "jq",
    "aws",
    "kubectl",
    "docker",
    "chmod",
    "curl",
    "eval",
}


@dataclass(frozen=True, kw_only=True)
class Block:
    where: str  # page and line
    language: str
    text: str
    file: str | None = None
    not_run: str | None = None


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = []
    for match in FENCE.finditer(text):
        mark, value = match["mark"], match["value"]
        found.append(
            Block(
                where=f"{page.relative_to(ROOT)}:{text[: match.start('text')].count(chr(10)) + 1}",
                language=match["language"],
                text=match["text"],
                file=value if mark == "file" else None,
                not_run=value if mark in ("not run", "typed by") else None,
            )
        )
    return found


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


# --- links


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = HEADING.findall(re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{name(page)} links to {target}, which is not there"
        if anchor:
            assert anchor in anchors(there), f"{name(page)} links to {target}, which has no such heading"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            linked = [(page.parent / t.partition("#")[0]).resolve() for t in LINK.findall(page.read_text())]
            waiting += [path for path in linked if path.suffix == ".md" and path.is_file()]
    assert set(PAGES) <= reached, f"linked from nowhere: {sorted(map(name, set(PAGES) - reached))}"


# --- blocks that run


def runs(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.not_run is None and block.language in ("sh", "python")]


@pytest.mark.parametrize("page", [page for page in PAGES if runs(page)], ids=name)
def test_every_block_runs(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    steps: list[dict[str, object]] = []
    for block in runs(page):
        if block.file:
            (tmp_path / block.file).write_text(block.text)
        elif block.language == "python":
            steps.append({"where": block.where, "python": block.text})
        else:
            steps += [{"where": block.where, "words": words, "to": to} for words, to in simple_commands(block.text)]
    ray = {}
    if any(re.search(r"ingest|^python \w+\.py", block.text, re.M) for block in runs(page) if block.language == "sh"):
        ray = {"RAY_ADDRESS": request.getfixturevalue("ray_address")}  # starting one costs more than the rest
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **ray}  # after Ray has added to it
    environment.pop("MLFLOW_TRACKING_URI", None)
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "docs" / "session.py"],
        input=json.dumps(steps),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=540,
    )
    assert done.returncode == 0, f"{name(page)}\n{done.stdout}\n{done.stderr}"


def test_the_sweep_of_its_page_runs_at_a_tiny_size(tmp_path: Path, ray_address: str) -> None:
    """Its arms, with three updates and few sequences each, on Ray, to a table."""
    (block,) = [block for block in blocks(ROOT / "docs" / "your-own-sweep.md") if block.file]
    (tmp_path / "flow_width.py").write_text(block.text)
    asked = runpy.run_path(str(tmp_path / "flow_width.py"))["flow_width"]("demo", (1,))
    short = {"max_steps": 3, "validate_every": 3, "report_every": 1, "data.valid_sequences": 4}
    arms = [replace(arm, config=with_changes(arm.config, short)) for arm in asked.arms]
    sweep = replace(asked, arms=arms, test_sequences=4)
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    result = run_sweep(sweep, root=tmp_path / "sweeps", tracking_uri=uri, say=lambda line: None)
    assert [trial.key for trial in result.finished] == ["Flow-2-s1", "Flow-8-s1"]
    report = CliRunner().invoke(
        main_group, ["report", "--table", "mnist", "--sweep", "flow-width"], env={"MLFLOW_TRACKING_URI": uri}
    )
    assert report.exit_code == 0, report.output
    assert "Flow-2" in report.output
    assert "Flow-8" in report.output


# --- commands that are only looked at


def simple_commands(text: str) -> list[tuple[list[str], str | None]]:
    """The commands of a piece of shell, without comments and NAME=value before them; and where their output goes."""
    commands: list[tuple[list[str], str | None]] = []
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;><")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if word and set(word) <= set("|&;"):
                while words and re.match(r"[A-Z_]+=", words[0]):
                    words.pop(0)
                if words:
                    end = words.index(">") if ">" in words else len(words)
                    commands.append((words[:end], words[end + 1] if end < len(words) else None))
                words = []
            else:
                words.append(word)
    return commands


def check_command(words: list[str], files: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    """That a command exists and takes these options, found out without running it."""
    match words:
        case ["nowcastlab", *rest]:
            check_click(main_group, rest)
        case ["python", "-m", "data_pipeline", *rest]:
            check_click(pipeline_group, rest)
        case ["python", file, *rest]:
            assert file in files or (ROOT / file).is_file(), f"there is no {file}"
            for option in (word.split("=")[0] for word in rest if word.startswith("--")):
                assert option in sweep_help(), f"a sweep has no {option}"
        case ["make", *targets]:
            known = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
            assert set(targets) <= set(known), f"the Makefile has no {set(targets) - set(known)}"
        case ["ray", verb, *rest]:
            from ray.scripts.scripts import cli

            assert verb in cli.commands, f"ray has no {verb}"
            for file in rest:
                assert not file.endswith(".yaml") or (ROOT / file).is_file(), f"there is no {file}"
        case [other, *_]:
            assert other in FOREIGN, f"{other}: not a command this test knows; run the block, or add it to FOREIGN"


def check_click(group: click.Command, words: list[str]) -> None:
    if not words or set(words) & {"--help", "-h", "--version"}:
        return
    try:
        context = group.make_context(group.name, list(words))
    except click.BadParameter as error:
        if error.param is not None and isinstance(error.param.type, click.Path):
            return  # a file of the reader's
        raise
    if isinstance(group, click.Group):
        _, below, rest = group.resolve_command(context, [*context._protected_args, *context.args])
        assert below is not None
        check_click(below, rest)


@functools.cache
def sweep_help() -> str:
    """All sweep files take the same options."""
    said, words = io.StringIO(), sys.argv
    sys.argv = ["hko7_benchmark.py", "--help"]
    try:
        with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
            runpy.run_path(str(ROOT / "sweeps" / "hko7_benchmark.py"), run_name="__main__")
    finally:
        sys.argv = words
    return said.getvalue()


@pytest.mark.parametrize("page", [page for page in PAGES if any(b.not_run for b in blocks(page))], ids=name)
def test_commands_that_are_not_run_exist_with_their_options(page: Path) -> None:
    files = {block.file for block in blocks(page) if block.file}
    for block in blocks(page):
        if block.not_run and block.language == "python":
            compile(block.text, block.where, "exec")
        elif block.not_run and block.language == "sh":
            for words, _ in simple_commands(block.text):
                try:
                    check_command(words, files)
                except click.UsageError as error:
                    pytest.fail(f"{block.where}: {shlex.join(words)}: {error.format_message()}")


def tree(command: click.Command) -> list[click.Command]:
    if not isinstance(command, click.Group):
        return [command]
    context = click.Context(command)
    below = [command.get_command(context, verb) for verb in command.list_commands(context)]
    return [command, *(leaf for verb in below if verb for leaf in tree(verb))]


@pytest.mark.parametrize("root", [main_group, pipeline_group], ids=lambda group: group.name)
def test_examples_in_help_exist_with_their_options(root: click.Command) -> None:
    for command in tree(root):
        for example in examples(command):
            for words, _ in simple_commands(example):
                try:
                    check_command(words)
                except click.UsageError as error:
                    pytest.fail(f"{command.name} --help: {example}: {error.format_message()}")


def test_an_option_that_is_none_is_noticed() -> None:
    with pytest.raises(click.UsageError, match="No such option"):
        check_command(["nowcastlab", "train", "--modle", "trajgru"])
    with pytest.raises(AssertionError, match="there is no sweeps/nothing"):
        check_command(["python", "sweeps/nothing.py"])


# --- what pages say of the code


def test_the_rooms_of_the_architecture_page_are_the_architecture() -> None:
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "tests" / "test_architecture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "architecture.md").read_text()
    block = page.partition("<!-- layers: from the top -->")[2].split("```")[1].removeprefix("text\n")
    drawn = [line.split("  ")[0].split(", ") for line in block.splitlines()]
    assert drawn[::-1] == module.LAYERS


def test_the_readme_shows_a_picture_that_is_there() -> None:
    assert re.search(r"!\[[^\]]+\]\(docs/images/[\w.-]+\)", (ROOT / "README.md").read_text())


def test_the_citation_file_is_read_as_one() -> None:
    """Without a version: that is in nowcastlab/__init__.py, and there alone."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)
    assert "version" not in citation
    (paper,) = citation["references"]
    assert (paper["year"], len(paper["authors"])) == (2017, 7)


def test_the_changelog_has_this_version() -> None:
    assert re.search(rf"^## .*{re.escape(__version__)}", (ROOT / "CHANGELOG.md").read_text(), re.M)


def test_the_demo_is_made_of_commands_that_exist() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\ndemo:")[2].partition("\n\n")[0]
    lines = [line.strip().replace("$(BIN)/", "") for line in recipe.splitlines()[1:]]
    for words, _ in simple_commands("\n".join(line for line in lines if not line.startswith("@"))):
        check_command(words)
