"""First values: He et al. (MSRA) for the leaky ReLU, biases zero, the flow net's last layer zero."""

from __future__ import annotations

import torch
from torch import nn

from nowcastlab.models.cell import SLOPE
from nowcastlab.models.traj_gru import TrajGRUCell


def initialise(network: nn.Module, *, seed: int) -> None:
    """Set every convolution of the network from the seed alone.

    The fan-in of a deconvolution is counted as the frameworks do it, outputs times kernel.

    Zero flow at first means that a TrajGRU starts with all links at the pixel itself. Only the flow net's *last* layer
    is zero, as the paper's main text has it: were the whole net zero, as its appendix says, no gradient would reach it.
    """
    generator = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            with torch.no_grad():
                drawn = torch.empty(module.weight.shape)
                nn.init.kaiming_normal_(drawn, a=SLOPE, generator=generator)
                module.weight.copy_(drawn)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for module in network.modules():
        if isinstance(module, TrajGRUCell):
            nn.init.zeros_(module.flow.weight)
