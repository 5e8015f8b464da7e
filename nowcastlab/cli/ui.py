"""`nowcastlab ui`: every trial in a browser."""

from __future__ import annotations

import signal
import threading
from types import FrameType

import click


@click.command()
@click.option("--sweep", help="Name of the sweep whose link is printed first.  [default: the newest]")
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Port to serve the pages on.  [default: the first free one from 5000]"
)
@click.option("--open", "launch", is_flag=True, help="Open the page in a browser too.")
def command(sweep: str | None, port: int | None, launch: bool) -> None:
    """Look at sweeps in MLflow's pages: every trial, its curves, its pictures.

    Serves what MLFLOW_TRACKING_URI names, or the local work/mlflow.db, on this machine alone, and prints the link to
    the sweep's runs. Ctrl-C ends it. Where MLFLOW_TRACKING_URI is a server that runs already, only the link is printed.

    In the pages: group runs by `arm` to average over seeds, add columns as `test/mse`, and look at a run's Artifacts
    for its pictures.

    \b
    Examples:
      nowcastlab ui
      nowcastlab ui --sweep links-vs-kernel
      nowcastlab ui --port 8080
      ssh -L 5000:127.0.0.1:5000 gpu-machine      to look from elsewhere
    """
    from nowcastlab.tracking import connect_existing, tracking_uri
    from nowcastlab.tracking.server import serving

    uri = tracking_uri()
    pages = _pages(connect_existing(uri), sweep)
    if uri.startswith("http"):
        _print(uri, pages, launch)
        return
    before = signal.signal(signal.SIGTERM, _interrupt)  # asked to end by a system as by a person
    click.echo("Starting MLflow's server ...", err=True)
    try:
        with serving(uri, port=port) as base:
            _print(base, pages, launch)
            click.echo("Ctrl-C ends it.", err=True)
            threading.Event().wait()
    except KeyboardInterrupt:
        click.echo("Ended.", err=True)
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _pages(client: object, sweep: str | None) -> dict[str, str]:
    """Experiments by sweep, the one to look at first; none for a store without sweeps."""
    from nowcastlab.errors import TrackingError

    found = client.search_experiments()  # type: ignore[attr-defined]
    pages = {experiment.name: experiment.experiment_id for experiment in found if experiment.name != "Default"}
    if sweep is not None and sweep not in pages:
        raise TrackingError(f"No sweep {sweep!r} there. The sweeps are: {', '.join(sorted(pages)) or 'none yet'}.")
    # the one asked for, or the one whose runs are newest; MLflow's own order is that in which they were made
    newest = client.search_runs(list(pages.values()), order_by=["attributes.start_time DESC"], max_results=1)  # type: ignore[attr-defined]
    recent = {run.info.experiment_id for run in newest}
    return dict(sorted(pages.items(), key=lambda page: (page[0] != sweep, page[1] not in recent)))


def _print(base: str, pages: dict[str, str], launch: bool) -> None:
    from nowcastlab.tracking.backend import shown
    from nowcastlab.tracking.server import experiment_link

    links = {name: experiment_link(base, experiment) for name, experiment in pages.items()}
    if not links:
        click.echo(f"No sweeps there yet; its pages: {shown(base)}")
        return
    width = max(map(len, links))
    for name, link in links.items():
        click.echo(f"{name:<{width}}  {link}")
    if launch:
        click.launch(next(iter(links.values())))
