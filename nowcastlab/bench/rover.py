"""`nowcastlab bench rover`: one optical-flow forecast on one core, beside other people's."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import click


@click.command()
@click.option(
    "--size",
    type=click.IntRange(32, 4096),
    default=480,
    show_default=True,
    help="Width and height of a frame, in pixels.",
)
@click.option("--leads", type=click.IntRange(1, 200), default=20, show_default=True, help="Frames to forecast.")
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=9,
    show_default=True,
    help="How many rounds; each contender runs once in each.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
def command(size: int, leads: int, rounds: int, as_json: bool) -> None:
    """Measure how long ROVER takes for one forecast, on one core.

    A forecast is a flow from two frames and its extrapolation. Beside ROVER run its own plain-torch form, OpenCV's DIS
    flow with the same extrapolation by cv2.remap and, where pysteps is installed, its Lucas-Kanade flow with its
    semi-Lagrangian extrapolation. All run in turn in one process with one thread; a ratio is the median of the rounds'
    own ratios, and CPU ms shows that no second core helped. Nothing is said here about whose forecast is better.

    \b
    Examples:
      nowcastlab bench rover
      nowcastlab bench rover --size 256 --leads 10
      nowcastlab bench rover --json
    """
    from nowcastlab.bench.timing import interleave

    frames = advected_rain(size)
    with one_thread():
        contenders = rover_forecasts(frames, leads) | {"OpenCV DIS": dis_forecast(frames, leads)}
        lucas_kanade = pysteps_forecast(frames, leads)
        if lucas_kanade:
            contenders["pysteps Lucas-Kanade"] = lucas_kanade
        timings = interleave(contenders, rounds=rounds)
    ours = timings["ROVER"]
    results = [
        {
            "method": name,
            "ms": 1e3 * timing.median_s,
            "cpu_ms": 1e3 * sorted(timing.cpu_s)[rounds // 2],
            "times_rover": timing.ratio_to(ours),
        }
        for name, timing in timings.items()
    ]
    if as_json:
        document = {"size": size, "leads": leads, "rounds": rounds, "threads": 1, "results": results}
        click.echo(json.dumps(document, indent=2))
        return
    click.echo(f"One forecast, {size} x {size}, {leads} leads; one thread, {rounds} rounds in turn")
    click.echo(f"  {'':24}{'ms':>8}{'CPU ms':>9}{'x ROVER':>9}")
    for row in results:
        click.echo(f"  {row['method']:24}{row['ms']:8.1f}{row['cpu_ms']:9.1f}{row['times_rover']:9.2f}")
    if not lucas_kanade:
        click.echo("  pysteps is not installed, so its Lucas-Kanade is not here (pip install pysteps).")


def advected_rain(size: int) -> Any:
    """(2, size, size) float32 in [0, 1]: smooth blobs, about half of it dry, moving by (3, -2) pixels."""
    import cv2
    import numpy as np

    noise = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
    blobs = cv2.GaussianBlur(noise, (0, 0), size / 40)
    field = np.clip(0.3 * blobs / blobs.std(), 0, 1)
    return np.stack([field, np.roll(field, (-2, 3), axis=(0, 1))])


def rover_forecasts(frames: Any, leads: int) -> dict[str, Callable[[], object]]:
    """ROVER's two variants, and the linear one without its compiled kernels."""
    import torch

    from nowcastlab.models.rover import Rover

    batch = torch.from_numpy(frames)[None]
    models = {
        "ROVER": Rover(),
        "ROVER non-linear": Rover(nonlinear=True),
        "ROVER in plain torch": Rover(compiled=False),
    }
    return {name: lambda model=model: model.predict(batch, leads=leads) for name, model in models.items()}  # type: ignore[misc]


def dis_forecast(frames: Any, leads: int) -> Callable[[], object]:
    """OpenCV's dense inverse search at its default (medium) preset."""
    import cv2
    import numpy as np

    height, width = frames.shape[1:]
    y, x = np.mgrid[:height, :width].astype(np.float32)
    dis = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)

    def forecast() -> object:
        before, now = (255 * frames).astype(np.uint8)
        flow = dis.calc(before, now, None)
        from_x, from_y = x - flow[..., 0], y - flow[..., 1]
        image, moved = frames[1], []
        for _ in range(leads):
            image = cv2.remap(image, from_x, from_y, cv2.INTER_LINEAR, borderValue=0)
            moved.append(image)
        return np.stack(moved)

    return forecast


def pysteps_forecast(frames: Any, leads: int) -> Callable[[], object] | None:
    """Lucas-Kanade and semi-Lagrangian extrapolation at pysteps' own defaults; None where it is not installed."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it announces its settings file, which would spoil --json
            from pysteps.extrapolation.semilagrangian import extrapolate
            from pysteps.motion.lucaskanade import dense_lucaskanade
    except ImportError:
        return None
    dbz = 70 * frames - 10
    return lambda: extrapolate(dbz[1], dense_lucaskanade(dbz), leads, outval=-10.0)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Torch and OpenCV held to one thread, and given back what they had."""
    import cv2

    from nowcastlab.training.machine import threads

    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        with threads(1):
            yield
    finally:
        cv2.setNumThreads(before)
