from __future__ import annotations

import torch

from nowcastlab.models.baselines import LastFrame


def test_the_last_frame_is_repeated_at_every_lead() -> None:
    frames = torch.rand(2, 5, 6, 7, generator=torch.Generator().manual_seed(0))
    forecast = LastFrame().predict(frames, leads=3)
    assert forecast.shape == (2, 3, 6, 7)
    for lead in range(3):
        assert torch.equal(forecast[:, lead], frames[:, -1])


def test_the_last_frame_is_neither_masked_nor_clipped() -> None:
    frames = torch.full((1, 5, 4, 4), 1.5)
    valid = torch.zeros(1, 5, 4, 4, dtype=torch.bool)
    assert torch.equal(LastFrame().predict(frames, valid, leads=2), torch.full((1, 2, 4, 4), 1.5))


def test_writing_into_one_lead_leaves_the_others_alone() -> None:
    forecast = LastFrame()(torch.ones(1, 2, 3, 3), 2)
    forecast[:, 0] = 0
    assert forecast[:, 1].min() == 1
