"""What a network is made of, as frozen values: equal specs build equal networks."""

from __future__ import annotations

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
