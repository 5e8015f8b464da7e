"""`nowcastlab models` as a user and as a script sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from nowcastlab.cli import main_group
from nowcastlab.cli.models import sequence_flops, table_line
from nowcastlab.models import Forecaster, build, names
from nowcastlab.models.flops import count_flops
from nowcastlab.models.zoo import Setting


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main_group, ["models", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def mnist_rows() -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(run("--json", "--dataset", "mnist"))}


def test_json_has_every_model_of_the_dataset(mnist_rows: dict[str, dict[str, Any]]) -> None:
    assert tuple(mnist_rows) == names("mnist")
    assert mnist_rows["conv-k5-d1"]["parameters"] == 4_767_505
    assert mnist_rows["last-frame"]["flops"] is None


def test_a_count_the_paper_prints_otherwise_stands_beside_ours_with_the_reason(
    mnist_rows: dict[str, dict[str, Any]],
) -> None:
    swapped = mnist_rows["conv-k3-d2"]
    assert (swapped["parameters"], swapped["paper_parameters_millions"]) == (2_604_817, 2.84)
    assert swapped["reason"] == "the paper swapped K3-D2 and L5"
    assert mnist_rows["conv-k5-d1"]["reason"] == ""
    assert table_line(swapped).split() == [
        "mnist",
        "conv-k3-d2",
        "2,604,817",
        "63.0",
        "2.84M:",
        *swapped["reason"].split(),
    ]


def test_flops_are_those_of_the_layers(mnist_rows: dict[str, dict[str, Any]]) -> None:
    # The 2D CNN by hand, 2 operations a multiply-add. Kernels of 4x4 times channels times out pixels (encoder),
    # enc1-4: 10*280*1024, 280*560*256, 560*840*64, 840*1120*16; or in pixels (forecaster), vid2-5: 1120*1120*16,
    # 1120*560*64, 560*280*256, 280*10*1024. And vid1, of kernel 1x1: 1120*1120*16.
    kernels = 2_867_200 + 40_140_800 + 30_105_600 + 15_052_800 + 20_070_400 + 40_140_800 + 40_140_800 + 2_867_200
    assert mnist_rows["conv2d"]["flops"] == 2 * (16 * kernels + 20_070_400)


@pytest.mark.parametrize("name", ["traj-l5", "conv-k3-d2", "dfn", "convlstm"])
def test_three_short_sequences_tell_what_a_long_one_costs(name: str) -> None:
    model = build(name, filters=4, stem_filters=3)
    setting = Setting(title="short", in_frames=4, leads=3, height=8, width=8)
    assert sequence_flops(model, setting) == count_flops(model, frames=4, leads=3, height=8, width=8)


def test_a_model_that_wants_two_frames_is_counted_from_as_many_as_it_gets() -> None:
    class Slope(Forecaster):
        def __init__(self) -> None:
            super().__init__()
            self.change = torch.nn.Conv2d(2, 1, 3, padding=1)

        def forward(self, frames: torch.Tensor, leads: int) -> torch.Tensor:
            return self.change(frames[:, -2:]).expand(-1, leads, -1, -1)

    setting = Setting(title="short", in_frames=4, leads=3, height=8, width=8)
    assert sequence_flops(Slope(), setting) == 2 * (2 * 3 * 3) * 8 * 8  # a multiply-add for each weight and pixel


def test_the_table_is_for_reading() -> None:
    lines = run("--dataset", "hko7").splitlines()
    assert lines[0] == "HKO-7 (dataset hko7): 5 frames to 20, 480x480"
    assert lines[1].split() == ["dataset", "model", "parameters", "GFLOPs", "the", "paper", "prints"]
    assert [line.split()[1] for line in lines[2:]] == list(names("hko7"))
    assert lines[3].split() == ["hko7", "trajgru", "12,150,053", "500.7"]


def test_help_teaches_without_loading_torch() -> None:
    script = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from nowcastlab.cli import main_group\n"
        "print(CliRunner().invoke(main_group, ['models', '--help']).output)\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "Examples:\n    nowcastlab models  " in done.stdout


def test_an_unknown_dataset_ends_in_a_message() -> None:
    result = CliRunner().invoke(main_group, ["models", "--dataset", "kth"])
    assert result.exit_code == 2
    assert "'mnist', 'hko7'" in result.output
