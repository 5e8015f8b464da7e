"""The dynamic filter network: a local filter, summing to one, moves the previous frame."""

from __future__ import annotations

import torch
from torch import nn

from nowcastlab.models.dfn import DynamicFilterNetwork
from nowcastlab.models.spec import RecurrentSpec, Resample

SPEC = RecurrentSpec(
    cell="conv_gru",
    filters=(4,),
    stem_filters=3,
    stem=Resample(kernel=3, stride=1, pad=1),
    downs=(),
    ups=(),
    head=Resample(kernel=3, stride=1, pad=1),
    state_kernels=(3,),
    state_dilations=(1,),
    local_filter=3,
)


class Always(nn.Module):
    """A head that gives every pixel the same filter logits."""

    def __init__(self, logits: list[float]) -> None:
        super().__init__()
        self.logits = torch.tensor(logits)

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return self.logits[None, :, None, None].expand(h.shape[0], -1, *h.shape[2:])


def test_a_filter_on_one_neighbour_moves_the_frame_a_pixel_a_lead() -> None:
    model = DynamicFilterNetwork(SPEC)
    left = [0.0] * 9
    left[3] = 1e4  # row by row: the middle row's first is the left neighbour, and the softmax takes nothing else
    model.head = Always(left)
    frames = torch.zeros(1, 2, 5, 8)
    frames[0, -1, 2, 1] = 0.7  # only the last frame is moved
    forecast = model(frames, 3)
    for lead in range(3):
        assert forecast[0, lead].nonzero().tolist() == [[2, 2 + lead]]
        assert forecast[0, lead].max() == frames.max()


def test_nothing_it_forecasts_is_brighter_than_what_it_saw() -> None:
    """Its filters are positive and sum to one, which is why it cannot follow growing rain (Shi et al. 2017)."""
    frames = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    forecast = DynamicFilterNetwork(SPEC)(frames, 4)
    assert forecast.min() >= 0
    assert forecast.max() <= frames[:, -1].max()


def test_before_training_it_is_nearly_a_blur_of_the_whole_neighbourhood() -> None:
    """Zero logits are the mean over 3 x 3, less at the border, where some of it is outside and zero."""
    model = DynamicFilterNetwork(SPEC)
    model.head = Always([0.0] * 9)
    forecast = model(torch.ones(1, 1, 4, 4), 1)[0, 0]
    assert torch.allclose(forecast[1:3, 1:3], torch.ones(2, 2))
    assert torch.allclose(forecast[0, 0], torch.tensor(4 / 9))
