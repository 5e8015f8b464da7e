"""`nowcastlab bench scores`: the fused pass against plain NumPy, one pass per threshold and score."""

from __future__ import annotations

import json
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from nowcastlab.errors import NowcastlabError
from nowcastlab.units import THRESHOLDS_MMH, WEIGHT_FROM_MMH, WEIGHTS, p_from_mmh, valid_pixels


def plain_scores(
    predicted: NDArray[np.float32], true: NDArray[np.uint8], excluded: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Counts (..., 4, threshold) and errors (..., 5) of frames (..., y, x), as one writes them first."""
    pixels = (-2, -1)
    mask = valid_pixels(true, excluded)
    truth = true / 255.0
    counts = np.empty((*true.shape[:-2], 4, len(THRESHOLDS_MMH)), np.int64)
    for j, rate in enumerate(THRESHOLDS_MMH):
        forecast, observed = predicted >= p_from_mmh(rate), truth >= p_from_mmh(rate)
        counts[..., 0, j] = (forecast & observed & mask).sum(pixels)
        counts[..., 1, j] = (~forecast & observed & mask).sum(pixels)
        counts[..., 2, j] = (forecast & ~observed & mask).sum(pixels)
        counts[..., 3, j] = (~forecast & ~observed & mask).sum(pixels)
    weight = np.ones_like(truth)
    for rate, value in zip(WEIGHT_FROM_MMH[1:], WEIGHTS[1:], strict=True):
        weight[truth >= p_from_mmh(rate)] = value
    p = predicted.astype(np.float64)
    absolute = np.abs(p - truth) * mask
    squared = absolute**2
    sums = [squared, absolute, weight * squared, weight * absolute]
    errors = np.empty((*true.shape[:-2], 5))
    for i, terms in enumerate(sums):
        errors[..., i] = terms.sum(pixels)
    down = np.abs(np.abs(np.diff(p, axis=-2)) - np.abs(np.diff(truth, axis=-2)))
    right = np.abs(np.abs(np.diff(p, axis=-1)) - np.abs(np.diff(truth, axis=-1)))
    down *= mask[..., 1:, :] & mask[..., :-1, :]
    right *= mask[..., 1:] & mask[..., :-1]
    errors[..., 4] = down.sum(pixels) + right.sum(pixels)
    return counts, errors


def rainy_frames(
    *, frames: int, size: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.uint8], NDArray[np.bool_]]:
    """Showers over a round radar that reach the thresholds about as often as the HKO-7 test frames do, and a forecast
    of them that is a little late and blurred."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(seed)
    field = gaussian_filter(rng.standard_normal((frames + 2, size, size)), (1.5, size / 40, size / 40))
    level = np.clip(77 * field / field.std() - 16, 0, 255)
    level[level < 66] = 0
    predicted = gaussian_filter(level[:-2], (0, 2, 2)) / 255
    y, x = np.mgrid[:size, :size] - (size - 1) / 2
    return predicted.astype(np.float32), level[2:].astype(np.uint8), np.hypot(y, x) > 0.496 * size


def measure(*, frames: int, size: int, rounds: int) -> dict[str, Any]:
    """Milliseconds a frame of each way, after a check that both count the same."""
    from nowcastlab.bench.timing import interleave
    from nowcastlab.skill.scorer import Scorer
    from nowcastlab.skill.sequence_scores import COUNTS, ERRORS

    predicted, true, excluded = rainy_frames(frames=frames, size=size, seed=0)
    scorer = Scorer(excluded=excluded, lead_minutes=np.arange(1, frames + 1), threads=1)
    present = np.ones((1, frames), np.bool_)

    def fused() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        scores = scorer.score(predicted[None], true[None], present=present, start=[0], episode=[0])
        counts = np.stack([getattr(scores, name)[0] for name in COUNTS], -2)
        return counts, np.stack([getattr(scores, name)[0] for name in ERRORS], -1)

    def frame_by_frame() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        counts, errors = zip(*(plain_scores(p, t, excluded) for p, t in zip(predicted, true, strict=True)), strict=True)
        return np.stack(counts), np.stack(errors)

    results = fused(), plain_scores(predicted, true, excluded), frame_by_frame()
    if not all(np.array_equal(results[0][0], counts) for counts, _ in results[1:]):
        raise NowcastlabError("The fused pass and plain NumPy count differently: this is a bug, please report it.")
    difference = max(float(np.abs(results[0][1] / errors - 1).max()) for _, errors in results[1:])
    # Having given back one large block, the C library keeps the next ones: plain NumPy's many temporaries of a frame
    # are then not asked of the kernel, page by page, every time. That is fairer to it.
    np.ones(3_000_000)
    timings = interleave(
        {
            "fused": fused,
            "plain": lambda: plain_scores(predicted, true, excluded),
            "plain_frame_by_frame": frame_by_frame,
        },
        rounds=rounds,
    )
    out: dict[str, Any] = {
        "frames": frames,
        "grid": [size, size],
        "thresholds": len(THRESHOLDS_MMH),
        "threads": 1,
        "rounds": rounds,
        "same_integers": True,
        "largest_relative_difference_of_errors": difference,
        "ms_per_frame": {name: 1e3 * timing.median_s / frames for name, timing in timings.items()},
    }
    for name in ("plain", "plain_frame_by_frame"):
        out[f"times_faster_than_{name}"] = timings[name].ratio_to(timings["fused"])
        out[f"times_faster_than_{name}_cpu"] = timings[name].ratio_to(timings["fused"], cpu=True)
    return out


@click.command()
@click.option("--frames", default=20, show_default=True, type=click.IntRange(1), help="Frames in a batch.")
@click.option(
    "--size", default=480, show_default=True, type=click.IntRange(16), help="Width and height of a frame, in pixels."
)
@click.option(
    "--rounds",
    default=9,
    show_default=True,
    type=click.IntRange(1),
    help="How many rounds; each contender runs once in each.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
def command(frames: int, size: int, rounds: int, as_json: bool) -> None:
    """Scoring a batch: the fused pass against plain NumPy, on one core, with the same integers.

    Plain NumPy is measured twice: the batch at once, as one writes it, and frame by frame, which spares the cache.

    \b
    Examples:
      nowcastlab bench scores
      nowcastlab bench scores --frames 80 --json
    """
    result = measure(frames=frames, size=size, rounds=rounds)
    if as_json:
        click.echo(json.dumps(result))
        return
    click.echo(
        f"Scoring {frames} frames of {size} x {size} at {result['thresholds']} thresholds, one thread, medians of "
        f"{rounds} rounds in turn.\nThe same integers; errors agree within "
        f"{result['largest_relative_difference_of_errors']:.0e}.\n"
    )
    click.echo(f"  fused pass                   {result['ms_per_frame']['fused']:8.2f} ms a frame")
    for name, title in (("plain", "batch at once "), ("plain_frame_by_frame", "frame by frame")):
        click.echo(
            f"  plain NumPy, {title}  {result['ms_per_frame'][name]:8.2f} ms a frame, "
            f"{result[f'times_faster_than_{name}']:.1f} times as long "
            f"(in CPU seconds {result[f'times_faster_than_{name}_cpu']:.1f})"
        )
