"""What a network is made of, as frozen values: equal specs build equal networks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Resample:
    """A square convolution that changes the grid, or a deconvolution that changes it back."""

    kernel: int
    stride: int
    pad: int


@dataclass(frozen=True, kw_only=True)
class RecurrentSpec:
    """An encoder-forecaster. Per-layer tuples run from the finest grid (ernn1) to the coarsest (ernn3).

    The forecaster mirrors the encoder: its layer on a grid has the filters, kernel, dilation and links of the
    encoder's layer there.
    """

    cell: Literal["conv_gru", "traj_gru", "conv_lstm"]
    filters: tuple[int, ...]
    stem_filters: int  # out of econv1, and the width of the head's layers
    stem: Resample  # econv1
    downs: tuple[Resample, ...]  # edown1, edown2: each widens to the next layer's filters
    ups: tuple[Resample, ...]  # fup1, fup2: from the coarsest grid down
    head: Resample  # fconv4 (stride 1) or fdeconv4 (the stem's stride)
    input_kernel: int = 3
    state_kernels: tuple[int, ...] = ()  # convolutional cells
    state_dilations: tuple[int, ...] = ()
    links: tuple[int, ...] = ()  # TrajGRU
    flow_filters: int = 32  # TrajGRU: hidden width of the structure generating network
    local_filter: int = 0  # DFN: the head's layers give way to a local filter of this size, as 11


@dataclass(frozen=True, kw_only=True)
class CnnLayer:
    """One row of the appendix's CNN tables: a convolution in the encoder, a deconvolution in the forecaster.

    Its filters are `width` times the network's base filter number c, or `filters` outright. The forecaster's last
    layer needs neither: it gives the forecast.
    """

    name: str
    space: Resample
    time: Resample | None = None  # the kernel's depth in a 3D network
    width: int = 0
    filters: int = 0
    norm: bool = False


@dataclass(frozen=True, kw_only=True)
class CnnSpec:
    """A 2D CNN (frames are channels) or a 3D one (frames are depth), from `in_frames` to `out_frames` at once.

    The forecaster opens with one layer on the coarsest grid, then undoes the encoder's strides in turn; any layer
    after that keeps the grid.
    """

    in_frames: int
    out_frames: int
    base_filters: int  # the tables' c
    encoder: tuple[CnnLayer, ...]
    forecaster: tuple[CnnLayer, ...]
    init: Literal["msra", "xavier"] = "msra"  # the paper's; the authors' release starts its CNNs with Xavier


def fitting_strides(strides: tuple[int, ...], height: int, width: int, *, coarsest: int = 4) -> tuple[int, ...]:
    """Strides near these that divide a grid: none larger, and no last grid smaller than `coarsest` if it can be.

    >>> fitting_strides((5, 3, 2), 64, 64)
    (4, 2, 2)
    """
    left, shortest = math.gcd(height, width), min(height, width)
    fitting = []
    for stride in strides:
        fits = next((s for s in range(stride, 1, -1) if left % s == 0 and shortest // s >= coarsest), 1)
        left, shortest = left // fits, shortest // fits
        fitting.append(fits)
    return tuple(fitting)
