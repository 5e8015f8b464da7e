"""`nowcastlab bench digits`: sequences of moving digits a second, on one core."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from nowcastlab.moving_digits import Motion, MovingDigits


@click.command()
@click.option(
    "--preset",
    type=click.Choice(["paper", "release"]),
    default="paper",
    show_default=True,
    help="How digits move: as the paper says, or as the authors' released code does.",
)
@click.option(
    "--size",
    type=click.IntRange(16, 512),
    default=64,
    show_default=True,
    help="Width and height of a frame, in pixels.",
)
@click.option("--count", type=click.IntRange(1, 10), default=3, show_default=True, help="Digits in a sequence.")
@click.option("--frames", type=click.IntRange(1, 200), default=20, show_default=True, help="Frames in a sequence.")
@click.option("--batch", type=click.IntRange(1, 1000), default=50, show_default=True, help="Sequences in a round.")
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=9,
    show_default=True,
    help="How many rounds; each contender runs once in each.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
def command(preset: str, size: int, count: int, frames: int, batch: int, rounds: int, as_json: bool) -> None:
    """Measure how fast moving digits are made, on one core.

    The plain way beside it warps each digit over the whole frame with OpenCV, as the authors' release does. Both run in
    turn in one process, and both include drawing the random numbers. The ratio is the median of the rounds' own ratios.

    \b
    Examples:
      nowcastlab bench digits
      nowcastlab bench digits --size 32 --count 2
      nowcastlab bench digits --json
    """
    import cv2

    from nowcastlab.bench.timing import interleave
    from nowcastlab.moving_digits import MovingDigits, load_digits

    source = MovingDigits(load_digits(), preset=preset, size=size, count=count, frames=frames)
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        timings = interleave(
            {
                "ours": lambda: source.training_batch(seed=0, step=0, batch_size=batch),
                "plain": lambda: plain_batch(source, source.motion(0, range(batch))),
            },
            rounds=rounds,
        )
    finally:
        cv2.setNumThreads(threads)
    result = {
        "sequences_per_second": batch / timings["ours"].median_s,
        "plain_sequences_per_second": batch / timings["plain"].median_s,
        "times_the_plain_way": timings["plain"].ratio_to(timings["ours"]),
        "cores": 1,
        **source.describe(),
    }
    if as_json:
        click.echo(json.dumps(result, indent=2))
        return
    click.echo(f"{source}; one core, {rounds} rounds of {batch} sequences")
    click.echo(f"  moving_digits     {result['sequences_per_second']:8.0f} sequences/s")
    click.echo(f"  OpenCV, a loop    {result['plain_sequences_per_second']:8.0f} sequences/s")
    click.echo(f"  ratio             {result['times_the_plain_way']:8.1f} x")


def plain_batch(source: MovingDigits, motion: Motion) -> list[object]:
    """The same sequences, one OpenCV warp over the whole frame for each digit of each frame."""
    import cv2
    import numpy as np

    from nowcastlab.moving_digits.source import BOUNCE_MARGIN, PAPER_SIZE

    zoom, canvas = source.size / PAPER_SIZE, (source.size, source.size)
    margin = BOUNCE_MARGIN * zoom
    batch: list[object] = []
    for n in range(len(motion)):
        sequence = np.zeros((source.frames, *canvas), np.float32)
        for d in range(source.count):
            image = source.cut_out(int(motion.digit[n, d])).astype(np.float32) / 255
            extent = np.array(image.shape[::-1], np.float64)
            centre = motion.corner[n, d] * (source.size - extent) + extent / 2
            heading = motion.heading_rad[n, d]
            velocity = motion.speed[n, d] * zoom * np.array([np.cos(heading), np.sin(heading)])
            scale, light = 1.0, 1.0
            for t in range(source.frames):
                if t:
                    growing = 1 if (t // 5) % 2 else -1
                    scale *= motion.scale[n, d] ** growing
                    light *= motion.illumination[n] ** -growing
                    moved = centre + velocity
                    centre = np.clip(moved, margin, source.size - margin)
                    velocity = np.where(moved == centre, velocity, -velocity)
                warp = cv2.getRotationMatrix2D(tuple(extent / 2), t * motion.rotation_deg[n, d], scale)
                warp[:, 2] += centre - extent / 2
                np.maximum(sequence[t], cv2.warpAffine(image * np.float32(light), warp, canvas), out=sequence[t])
        batch.append(sequence)
    return batch
