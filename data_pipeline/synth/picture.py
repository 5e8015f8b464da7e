"""A contact sheet: rows of one wet spell each, frames half an hour apart."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from data_pipeline.synth.days import Sky, SyntheticPlan
from nowcastlab.units import NOISE_BELOW_PIXEL

_ROWS, _COLUMNS, _STEP_MINUTES, _SIDE = 4, 6, 30, 240
_BACKGROUND, _OUTSIDE = (24, 24, 24), (64, 64, 64)


def contact_sheet(plan: SyntheticPlan, path: Path) -> None:
    sky = Sky(plan)
    rows = []
    for row in range(_ROWS):
        date = plan.dates[row * len(plan.dates) // _ROWS]
        first = int(plan.minutes(date)[0]) + (row * 6 + 1) * 60
        stamps = first + np.arange(_COLUMNS) * _STEP_MINUTES
        rows.append(np.concatenate([_colour(pixels, sky) for pixels in sky.frames(stamps)], axis=1))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(cv2.imencode(".png", np.concatenate(rows, axis=0))[1].tobytes())


def _colour(pixels: NDArray[np.uint8], sky: Sky) -> NDArray[np.uint8]:
    image = cv2.applyColorMap(pixels, cv2.COLORMAP_TURBO)
    image[pixels < NOISE_BELOW_PIXEL] = _BACKGROUND
    image[sky.exclusion.out_boundary] = _OUTSIDE
    image = cv2.resize(image, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA if len(image) > _SIDE else cv2.INTER_NEAREST)
    return cv2.copyMakeBorder(image, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=(0, 0, 0))
