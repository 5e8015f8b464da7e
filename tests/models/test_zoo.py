"""Every name, its size to the last digit, and every way to change it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nowcastlab.errors import ConfigError
from nowcastlab.models import build, names, spec_of
from nowcastlab.models.overrides import encoder_strides
from nowcastlab.models.spec import CnnSpec, RecurrentSpec, Resample, fitting_strides
from nowcastlab.models.zoo import ZOO

# Computed from the appendix's tables; see models/zoo.py for where the paper prints something else.
PARAMETERS = {
    ("conv-k3-d2", "mnist"): 2_604_817,
    ("conv-k5-d1", "mnist"): 4_767_505,
    ("conv-k7-d1", "mnist"): 8_011_537,
    ("traj-l5", "mnist"): 2_842_157,
    ("traj-l9", "mnist"): 3_421_277,
    ("traj-l13", "mnist"): 4_000_397,
    ("traj-l17", "mnist"): 4_579_517,
    ("dfn", "mnist"): 4_825_648,
    ("conv2d", "mnist"): 59_061_250,
    ("conv3d", "mnist"): 66_081_921,
    ("convgru", "hko7"): 13_649_081,
    ("trajgru", "hko7"): 12_150_053,
    ("conv2d", "hko7"): 57_386_062,
    ("conv3d", "hko7"): 66_422_569,
    ("convlstm", "hko7"): 17_472_761,
}


def parameters(name: str, dataset: str, **overrides: Any) -> int:
    return sum(p.numel() for p in build(name, dataset, **overrides).parameters())


@pytest.mark.parametrize(("name", "dataset"), PARAMETERS)
def test_parameter_counts_are_exact(name: str, dataset: str) -> None:
    assert parameters(name, dataset) == PARAMETERS[name, dataset]


@pytest.mark.parametrize(("name", "dataset"), PARAMETERS)
def test_a_count_the_paper_prints_agrees_or_has_a_reason(name: str, dataset: str) -> None:
    entry = ZOO[dataset][name]
    if entry.printed_millions is not None:
        agrees = entry.printed_millions == round(PARAMETERS[name, dataset] / 1e6, 2)
        assert agrees != bool(entry.reason)


def test_convlstm_is_convgru_with_four_gates_for_three() -> None:
    # One gate in all six cells: filters * (inputs * 3 * 3 + 1, and filters * kernel ** 2 + 1 from the state).
    fine = 64 * (8 * 9 + 1 + 64 * 25 + 1) + 64 * (192 * 9 + 1 + 64 * 25 + 1)
    middle = 2 * 192 * (192 * 9 + 1 + 192 * 25 + 1)
    coarse = 192 * (192 * 9 + 1 + 192 * 9 + 1) + 192 * (192 * 9 + 1)  # the forecaster's first cell has no input
    gate = fine + middle + coarse
    assert PARAMETERS["convlstm", "hko7"] == PARAMETERS["convgru", "hko7"] + gate


def test_names_are_the_papers_then_the_baselines() -> None:
    assert names("hko7") == (
        *("convgru", "trajgru", "conv2d", "conv3d", "convlstm"),
        *("last-frame", "rover", "rover-nonlinear"),
    )
    assert names("mnist")[:2] == ("conv-k3-d2", "conv-k5-d1")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"No model 'unet' for hko7\. The models are: convgru, trajgru, .*, rover"):
        build("unet", "hko7")


def test_a_name_of_the_other_dataset_is_recognised() -> None:
    with pytest.raises(ConfigError, match=r"'trajgru' is a name of hko7\."):
        build("trajgru", "mnist")


def test_an_unknown_dataset_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"No dataset 'kth'.*mnist \(MovingMNIST\+\+\), hko7 \(HKO-7\)"):
        build("conv2d", "kth")


def test_the_papers_names_work_with_other_numbers() -> None:
    # 144,780 parameters a link: (3,421,277 - 2,842,157) / 4
    assert parameters("traj-l7", "mnist") == 2_842_157 + 2 * 144_780
    # dilation costs nothing
    assert parameters("conv-k3-d1", "mnist") == PARAMETERS["conv-k3-d2", "mnist"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("traj-l0", r"links \(=0\)"), ("conv-k4-d1", "kernel of 4"), ("conv-k3-d0", r"state_dilations \(=0\)")],
)
def test_numbers_that_make_no_network_are_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(name)


def test_one_number_stands_for_every_layer_and_a_list_for_a_tuple() -> None:
    assert spec_of("trajgru", "hko7", links=5) == spec_of("trajgru", "hko7", links=[5, 5, 5])
    assert spec_of("convgru", "hko7", state_kernels=3) == spec_of("convgru", "hko7", state_kernels=(3, 3, 3))
    assert spec_of("conv-k5-d1", state_kernels=7) == spec_of("conv-k7-d1")


def test_widths_change_by_name() -> None:
    spec = spec_of("trajgru", "hko7", links=(5, 5, 5), filters=(8, 12, 12), stem_filters=4)
    assert isinstance(spec, RecurrentSpec)
    assert (spec.filters, spec.links, spec.stem_filters, spec.cell) == ((8, 12, 12), (5, 5, 5), 4, "traj_gru")
    cnn = spec_of("conv3d", "hko7", base_filters=4)
    assert isinstance(cnn, CnnSpec)
    assert cnn.base_filters == 4


def test_fewer_layers_take_fewer_resamplings() -> None:
    down, up = Resample(kernel=3, stride=2, pad=1), Resample(kernel=4, stride=2, pad=1)
    model = build("traj-l5", filters=(4, 6), downs=(down,), ups=(up,), links=3, stem_filters=2)
    assert model(torch.rand(1, 2, 8, 8), 2).shape == (1, 2, 8, 8)


@pytest.mark.parametrize(
    ("name", "dataset", "overrides", "message"),
    [
        ("trajgru", "hko7", {"link": 5}, r"Unknown override link\. This network takes: cell, filters, .*, strides"),
        ("conv2d", "hko7", {"filters": 8}, r"Unknown override filters\. This network takes: in_frames, .*base_filters"),
        ("rover", "hko7", {"filters": 8}, r"rover has nothing to configure; got filters"),
        ("trajgru", "hko7", {"links": (5, 5)}, r"links \(=\(5, 5\)\) must have one value for each of the 3 layers"),
        ("trajgru", "hko7", {"cell": "conv_gru"}, r"state_kernels \(=\(\)\) must have one value"),
        ("trajgru", "hko7", {"filters": (8, 8)}, r"links .* each of the 2 layers"),
        ("convgru", "hko7", {"filters": (8, 0, 8)}, r"filters \(=0\) must be a whole number from 1"),
        ("convgru", "hko7", {"cell": "gru"}, r"cell \(='gru'\) must be one of conv_gru, traj_gru, conv_lstm"),
        ("convgru", "hko7", {"strides": (2, 2)}, r"strides \(=\(2, 2\)\) must be 3 whole numbers .* \(5, 3, 2\)"),
        ("convgru", "hko7", {"local_filter": 11}, r"local_filter \(=11\) .* stem's stride \(=5\) must be 1"),
        ("convgru", "hko7", {"strides": 2}, r"strides \(=\(2,\)\) must be 3 whole numbers .* \(5, 3, 2\)"),
        ("dfn", "mnist", {"local_filter": 10}, "kernel of 10"),
        ("convgru", "hko7", {"input_kernel": -1}, "kernel of -1"),
        ("convgru", "hko7", {"input_kernel": "3"}, r"input_kernel \(='3'\) must be a whole number\."),
        ("trajgru", "hko7", {"links": 2.5}, r"links \(=2.5\) must be a whole number, or one for each layer"),
        ("trajgru", "hko7", {"links": [3, "5", 3]}, r"links \(=\(3, '5', 3\)\) must be a whole number"),
        ("trajgru", "hko7", {"filters": True}, r"filters .*True.* must be a whole number"),
        ("convgru", "hko7", {"cell": 3}, r"cell \(=3\) must be a word"),
        ("convgru", "hko7", {"stem": [7, 5, 1]}, r"stem \(=\(7, 5, 1\)\) must be made of Resample .* `strides`"),
        ("conv2d", "mnist", {"base_filters": 0}, r"base_filters \(=0\)"),
        ("convgru", "hko7", {"filters": []}, r"filters \(=\(\)\) makes no layer at all"),
        ("conv2d", "mnist", {"encoder": []}, r"encoder \(=\(\)\) makes no layer at all"),
        ("conv3d", "mnist", {"forecaster": []}, r"forecaster \(=\(\)\) makes no layer at all"),
    ],
)
def test_an_override_that_cannot_work_says_what_could(
    name: str, dataset: str, overrides: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        build(name, dataset, **overrides)


SMALL: dict[str, dict[str, Any]] = {
    "trajgru": {"links": 3, "filters": 4, "stem_filters": 2, "flow_filters": 4},
    "convlstm": {"filters": 4, "stem_filters": 2},
    "conv2d": {"base_filters": 1},
    "conv3d": {"base_filters": 1},
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("side", [60, 64, 96])
def test_a_network_of_the_benchmark_is_refitted_to_a_small_grid_by_its_strides(name: str, side: int) -> None:
    spec = spec_of(name, "hko7")
    assert spec is not None
    strides = fitting_strides(encoder_strides(spec), side, side)
    model = build(name, "hko7", strides=strides, **SMALL[name])
    assert model(torch.rand(2, 5, side, side), 20).shape == (2, 20, side, side)


def test_a_dynamic_filter_network_can_be_had_for_radar() -> None:
    model = build("convgru", "hko7", local_filter=3, strides=(1, 2, 2), filters=4, stem_filters=2)
    assert model(torch.rand(1, 2, 12, 12), 2).shape == (1, 2, 12, 12)


@pytest.mark.parametrize("name", ["trajgru", "conv2d", "conv3d"])
def test_the_papers_own_strides_give_the_papers_network(name: str) -> None:
    spec = spec_of(name, "hko7")
    assert spec is not None
    assert spec_of(name, "hko7", strides=list(encoder_strides(spec))) == spec


def test_fitting_strides_keep_to_divisors_and_leave_a_grid_to_work_on() -> None:
    assert fitting_strides((5, 3, 2), 480, 480) == (5, 3, 2)
    assert fitting_strides((5, 3, 2), 64, 64) == (4, 2, 2)  # 64, 16, 8, 4
    assert fitting_strides((5, 3, 2), 60, 90) == (5, 3, 1)  # 60 -> 12 -> 4; another 2 would leave 2 rows
    assert fitting_strides((5, 3, 2), 61, 61) == (1, 1, 1)
