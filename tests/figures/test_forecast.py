from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nowcastlab.errors import ConfigError
from nowcastlab.figures.colours import EXCLUDED, rgb
from nowcastlab.figures.forecast import Nowcast, animate, forecast_grid, moments, pixels_from_p


def nowcast(*, truth: bool = True, leads: int = 20) -> Nowcast:
    n = 5 + leads
    observed = np.zeros((n if truth else 5, 12, 12), np.uint8)
    observed[:, 4:8, 4:8] = 200
    excluded = np.zeros((12, 12), bool)
    excluded[0] = True
    present = np.ones(len(observed), bool)
    present[1] = False
    return Nowcast(
        name="a model",
        times=23_872_000 + 6 * np.arange(n),
        observed=observed,
        present=present,
        forecast=np.zeros((leads, 12, 12), np.float32),
        excluded=excluded,
    )


def test_what_is_excluded_is_grey_in_observation_and_forecast() -> None:
    picture = nowcast()
    observed, forecast = picture.observed_image(0), picture.forecast_image(5)
    assert observed is not None
    assert forecast is not None
    assert (observed[0] == rgb(EXCLUDED)).all()
    assert (forecast[0] == rgb(EXCLUDED)).all()
    assert not (observed[5, 5] == forecast[5, 5]).all()  # rain against none


def test_a_missing_frame_has_no_image() -> None:
    assert nowcast().observed_image(1) is None


def test_nothing_is_forecast_for_the_past() -> None:
    assert nowcast().forecast_image(4) is None
    assert nowcast().forecast_image(5) is not None


def test_minutes_count_from_the_newest_frame_seen() -> None:
    picture = nowcast()
    assert [picture.minutes_ahead(i) for i in (0, 4, 5, 24)] == [-24, 0, 6, 120]


def test_a_forecast_beyond_the_scale_is_clipped() -> None:
    assert pixels_from_p([-0.1, 0.0, 0.5, 1.0, 1.3]).tolist() == [0, 0, 128, 255, 255]


@pytest.mark.parametrize(("leads", "shown"), [(20, [0, 4, 8, 12, 16, 20, 24]), (1, [0, 4, 5]), (3, [0, 4, 5, 6, 7])])
def test_a_picture_shows_first_and_last_input_and_leads_up_to_the_last(leads: int, shown: list[int]) -> None:
    assert moments(nowcast(leads=leads)) == shown


@pytest.mark.parametrize("truth", [True, False])
def test_a_grid_is_drawn_with_and_without_the_truth(truth: bool) -> None:
    buffer = io.BytesIO()
    forecast_grid([nowcast(truth=truth)] * 2).savefig(buffer)
    assert np.asarray(Image.open(buffer)).std() > 5


@pytest.mark.parametrize("truth", [True, False])
def test_an_animation_has_every_frame_and_rests_on_the_last(truth: bool, tmp_path: Path) -> None:
    animate(nowcast(truth=truth), tmp_path / "a.gif")
    durations = []
    with Image.open(tmp_path / "a.gif") as animation:
        for i in range(animation.n_frames):
            animation.seek(i)
            durations.append(animation.info["duration"])
    assert durations == [200] * 24 + [1500]


def test_frames_that_do_not_fit_the_times_are_refused() -> None:
    with pytest.raises(ConfigError, match="`observed` has 7 frames; with 25 times and 20 leads it must have 5"):
        Nowcast(
            name="x",
            times=np.arange(25),
            observed=np.zeros((7, 4, 4), np.uint8),
            present=np.ones(7, bool),
            forecast=np.zeros((20, 4, 4), np.float32),
            excluded=np.zeros((4, 4), bool),
        )
