"""`nowcastlab predict`: a forecast for one moment, as a store, pictures and an animation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nowcastlab.cli.forecasters import DEVICE, WHICH, Subject, open_data, open_forecaster
from nowcastlab.cli.verbs import FiniteRange, given
from nowcastlab.stamps import clock, datetime_from_minutes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nowcastlab.cli.frames_in import Inputs
    from nowcastlab.store import Store

STORE, FRAMES = "forecast.zarr", "frames"
FRAMES_IN, LEADS = 5, 20  # of a baseline; a network has its own


@click.command()
@click.argument("what", metavar="RUN_FOLDER_OR_BASELINE")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--store", "url", help="Take the frames from a store.  [default: the run's own, without FILES]")
@click.option("--at", help='The time of the newest frame, as "2014-05-11 04:30", by the data\'s own clock.')
@click.option(
    "--interval",
    type=click.IntRange(min=1),
    default=6,
    show_default=True,
    help="FILES: minutes from one frame to the next.",
)
@click.option(
    "--km-per-pixel",
    type=FiniteRange(min=0, min_open=True),
    help="FILES: size of a pixel, in km.  [default: HKO-7's, 1.067]",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the forecast.  [default: work/forecasts/NAME-TIME]"
)
@click.option("--json", "as_json", is_flag=True, help="What was written, as one JSON object on standard output.")
@WHICH
@DEVICE
@click.pass_context
def command(
    ctx: click.Context,
    what: str,
    files: tuple[Path, ...],
    url: str | None,
    at: str | None,
    interval: int,
    km_per_pixel: float | None,
    out: Path | None,
    as_json: bool,
    which: str,
    device: str,
) -> None:
    """Forecast two hours from five frames, with a trained network or a baseline.

    The frames come from a store, the five up to --at, or from FILES: five grey PNG files, oldest first, or one .npz
    with a uint8 array (frames, y, x). Names like RAD150522043000.png or 201505220430.png say when they were.

    The folder gets forecast.zarr (a store like any other, with what made it in its attributes: `xarray.open_zarr` reads
    it), frames/YYYYMMDDHHMM.png (grey, the pixels themselves), forecast.png and forecast.gif (colours by rain rate,
    with times, what is excluded from scoring in grey).

    \b
    Examples:
      nowcastlab predict work/run --at "2014-05-11 04:30"
      nowcastlab predict rover --store work/demo.zarr --at "2014-05-11 23:54" --out work/rover-forecast
      nowcastlab predict last-frame RAD15052204[0-2]*.png      the five from 04:00 to 04:24
      nowcastlab predict work/run frames.npz --at "2015-05-22 04:30"
    """
    from nowcastlab.cli.frames_in import HKO7_KM_PER_PIXEL, from_files, from_store, parse_time
    from nowcastlab.config import RadarData
    from nowcastlab.figures.forecast import Nowcast, animate, forecast_grid
    from nowcastlab.training.machine import pick_device

    if files and url:
        raise click.UsageError("Give frames by --store and --at, or as FILES, not both.")
    if not files and at is None:
        raise click.UsageError('Say when: --at "2014-05-11 04:30", the time of the newest frame to be seen.')
    if not files and (misplaced := given(ctx, "--interval", "--km-per-pixel")):
        raise click.UsageError(f"{misplaced[0]} is for FILES: a store says so itself.")
    place = pick_device(device)
    subject = open_forecaster(what, which=which, device=place)
    count, leads = FRAMES_IN, LEADS
    if subject.config is not None:
        data = subject.config.data
        if not isinstance(data, RadarData):
            raise click.UsageError(f"{what} forecasts moving digits, not rain: give a run made with --store.")
        count, leads = data.in_frames, data.leads
    moment = parse_time(at) if at is not None else None
    if files:
        inputs = from_files(
            files, count, at=moment, interval_minutes=interval, km_per_pixel=km_per_pixel or HKO7_KM_PER_PIXEL
        )
    else:
        assert moment is not None
        inputs = from_store(open_data(subject, url), moment, count)
    if subject.config is not None and isinstance(data, RadarData) and data.interval_minutes != inputs.interval_minutes:
        click.echo(
            f"warning: {subject.name} learnt from frames {data.interval_minutes} minutes apart, these are "
            f"{inputs.interval_minutes}: it will move rain at the wrong speed.",
            err=True,
        )
    newest = inputs.minutes[-1]
    name = f"{subject.facts['forecaster']}-{datetime_from_minutes(newest):%Y%m%d-%H%M}"
    folder = out or Path("work/forecasts") / name
    before = _earlier(folder, files)

    nowcast = Nowcast(
        name=subject.name,
        times=_times(inputs, leads),
        observed=inputs.pixels,
        present=inputs.present,
        forecast=_forecast(subject, inputs, leads, place),
        excluded=inputs.excluded,
    )
    folder.mkdir(parents=True, exist_ok=True)
    if before is not None:
        for minute in before.minutes():  # before the store, which is what says that they are a forecast's
            _frame_file(folder, minute).unlink(missing_ok=True)
        shutil.rmtree(folder / STORE)
    store = _write_store(folder / STORE, subject, inputs, nowcast.forecast)
    frames = _write_frames(folder, inputs, nowcast.forecast)
    forecast_grid([nowcast]).savefig(folder / "forecast.png")
    animate(nowcast, folder / "forecast.gif")
    written = [store, frames, folder / "forecast.png", folder / "forecast.gif"]
    missing = int((~inputs.present).sum())
    if as_json:
        made = {**subject.facts, "at": clock(newest), "missing_inputs": missing, "folder": str(folder)}
        click.echo(json.dumps({**made, "files": [str(path) for path in written]}))
        return
    click.echo(
        f"{subject.name}: {leads} frames, {inputs.interval_minutes} to {leads * inputs.interval_minutes} minutes after "
        f"{clock(newest)}" + (f"; {missing} of the {count} frames seen were missing" if missing else "")
    )
    click.echo("Written:\n" + "\n".join(f"  {path}" for path in written))
    click.echo(f"Next:\n  python -c \"import xarray; print(xarray.open_zarr('{store}'))\"")


def _times(inputs: Inputs, leads: int) -> NDArray[np.int64]:
    import numpy as np

    return inputs.minutes[0] + inputs.interval_minutes * np.arange(len(inputs.minutes) + leads)


def _forecast(subject: Subject, inputs: Inputs, leads: int, device: Any) -> NDArray[np.float32]:
    from nowcastlab.protocol import forecast_from

    subject.model.check_grid(*inputs.pixels.shape[1:])
    forecast = forecast_from(subject.model, inputs.pixels[None], inputs.present[None], inputs.excluded, leads, device)
    return forecast[0].cpu().numpy()


def _earlier(folder: Path, seen: tuple[Path, ...]) -> Store | None:
    """The forecast that is in the folder and makes way for this one. Whatever else is there is a user's own."""
    from nowcastlab.errors import StoreError
    from nowcastlab.store import open_store

    path, frames = folder / STORE, folder / FRAMES
    if mixed := [file for file in seen if file.resolve().parent == frames.resolve()]:
        raise StoreError(f"{mixed[0]} lies where the forecast's own frames go. Give another folder with --out.")
    if path.exists():
        store = open_store(str(path))
        if store.attributes.get("kind") != "forecast":
            raise StoreError(f"{path} is a store, and not a forecast. Give another folder with --out.")
        return store
    if frames.is_dir() and any(frames.iterdir()):
        raise StoreError(f"{frames} has files in it, and not of a forecast. Give another folder with --out.")
    return None


def _frame_file(folder: Path, minute: int) -> Path:
    return folder / FRAMES / f"{datetime_from_minutes(minute):%Y%m%d%H%M}.png"


def _write_store(path: Path, subject: Subject, inputs: Inputs, forecast: NDArray[np.float32]) -> Path:
    from nowcastlab import __version__
    from nowcastlab.figures.forecast import pixels_from_p
    from nowcastlab.store import StoreWriter

    minutes = _times(inputs, len(forecast))[len(inputs.minutes) :]
    days = [datetime_from_minutes(m).date() for m in minutes.tolist()]
    pixels = pixels_from_p(forecast)
    newest = clock(inputs.minutes[-1])
    with StoreWriter.create(
        path,
        dates=sorted(set(days)),
        grid=(pixels.shape[1], pixels.shape[2]),
        interval_minutes=inputs.interval_minutes,
        km_per_pixel=inputs.km_per_pixel,
        title=f"Forecast by {subject.name} from {newest}",
        excluded=inputs.excluded,
        attributes={
            "kind": "forecast",
            **subject.facts,
            "forecast_reference_time": newest,
            "observed": inputs.source,
            "missing_inputs": int((~inputs.present).sum()),
            "nowcastlab": __version__,
        },
    ) as writer:
        for date in sorted(set(days)):  # a forecast made in the evening crosses midnight
            rows = [i for i, day in enumerate(days) if day == date]
            writer.commit(writer.write_day(date, minutes[rows], pixels[rows]))
    return path


def _write_frames(folder: Path, inputs: Inputs, forecast: NDArray[np.float32]) -> Path:
    from PIL import Image

    from nowcastlab.figures.forecast import pixels_from_p

    (folder / FRAMES).mkdir(exist_ok=True)
    for minute, frame in zip(
        _times(inputs, len(forecast))[len(inputs.minutes) :], pixels_from_p(forecast), strict=True
    ):
        Image.fromarray(frame).save(_frame_file(folder, minute))
    return folder / FRAMES
