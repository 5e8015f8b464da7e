from __future__ import annotations

import numpy as np
import pytest
import torch

from nowcastlab.errors import ConfigError
from nowcastlab.figures.links import arrows, busiest, draw_links
from nowcastlab.models.warp import warp


def test_an_arrow_points_at_the_place_that_the_warp_reads() -> None:
    """One cell of the field is 1: whoever sees it reads there, so its arrow must end there."""
    field = torch.zeros(1, 1, 6, 8)
    field[0, 0, 4, 1] = 1  # y = 4, x = 1
    flow = torch.zeros(1, 2, 1, 6, 8)
    flow[0, 0, 0, 2, 5], flow[0, 1, 0, 2, 5] = 1 - 5, 4 - 2  # the cell at y = 2, x = 5 looks there
    assert warp(field, flow)[0, 0, 0, 2, 5] == 1
    start, end = arrows(flow[0, :, 0].numpy(), stride=1)
    (which,) = np.flatnonzero((start == [5, 2]).all(axis=1))
    np.testing.assert_array_equal(end[which], [1, 4])


def test_a_cell_begins_in_the_middle_of_its_pixels() -> None:
    start, end = arrows(np.ones((2, 2, 2)), stride=4)  # cell 0 covers pixels 0..3, whose middle is 1.5
    np.testing.assert_array_equal(start, [[1.5, 1.5], [5.5, 1.5], [1.5, 5.5], [5.5, 5.5]])
    np.testing.assert_array_equal(end - start, np.full((4, 2), 4.0))  # one cell is four pixels


def test_a_fine_grid_is_thinned() -> None:
    start, _ = arrows(np.zeros((2, 64, 64)), stride=1)
    assert len(start) == 16 * 16


def test_the_busiest_links_are_those_that_differ_from_place_to_place() -> None:
    links = np.zeros((3, 2, 4, 4))
    links[0] = 100  # far, but alike everywhere
    links[1, 0, 0, 0] = 1
    links[2, 1] = np.arange(16).reshape(4, 4)
    assert busiest(links, 2) == [2, 1]


def test_the_arrows_stand_over_the_frame() -> None:
    figure = draw_links(np.zeros((32, 32, 3), np.uint8), np.ones((2, 8, 8)), stride=4, title="link 1")
    (axes,) = figure.axes
    (quiver,) = axes.collections
    assert quiver.N == 64
    assert axes.get_ylim() == (31.5, -0.5)  # y runs down, as rows do
    np.testing.assert_array_equal(quiver.V, np.full(64, 4.0))
    assert quiver.angles == "xy"  # so that a positive dy points down the picture too


def test_a_flow_of_another_shape_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"not \(3, 4, 4\)"):
        draw_links(np.zeros((4, 4, 3), np.uint8), np.zeros((3, 4, 4)), stride=1)
