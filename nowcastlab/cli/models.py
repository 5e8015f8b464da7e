"""`nowcastlab models`: what can be trained or scored, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from nowcastlab.models import Forecaster
    from nowcastlab.models.zoo import Setting


@click.command()
@click.option("--dataset", type=click.Choice(["mnist", "hko7"]), help="Only this dataset's models.")
@click.option("--json", "as_json", is_flag=True, help="One JSON list on standard output, for scripts.")
def command(dataset: str | None, as_json: bool) -> None:
    """List every model by name, with its parameters and the work of one forecast.

    Networks are as the appendix of Shi et al. 2017 configures them for MovingMNIST++ (mnist) and HKO-7 (hko7). A name
    with a dataset is all that code needs: nowcastlab.models.build("trajgru", dataset="hko7"). Link counts, kernels,
    dilations, widths and strides can be given beside it: links=5, filters=(8, 12, 12), base_filters=8 for CNNs.
    MovingMNIST++ also takes the paper's names with other numbers: traj-l7, conv-k3-d1.

    GFLOPs are those of the convolutions and matrix products in forecasting one sequence at the paper's size; a training
    step costs about three times as much. Where the paper prints another parameter count, both stand here with the
    reason.

    \b
    Examples:
      nowcastlab models                    every model
      nowcastlab models --dataset hko7     the benchmark's
      nowcastlab models --json             the same for scripts
    """
    from nowcastlab.models.zoo import SETTINGS

    datasets = [dataset] if dataset else list(SETTINGS)
    if as_json:
        click.echo(json.dumps([row for key in datasets for row in _rows(key)], indent=2))
        return
    for i, key in enumerate(datasets):
        setting = SETTINGS[key]
        click.echo(
            f"{chr(10) if i else ''}{setting.title} (dataset {key}): {setting.in_frames} frames to {setting.leads}, "
            f"{setting.height}x{setting.width}"
        )
        click.echo(f"{'dataset':8} {'model':16} {'parameters':>11} {'GFLOPs':>8}   the paper prints")
        for row in _rows(key):
            click.echo(table_line(row))


def _rows(dataset: str) -> Iterator[dict[str, Any]]:
    """One model at a time, so that a table appears as it is counted."""
    from nowcastlab.models import build, names
    from nowcastlab.models.zoo import SETTINGS, ZOO

    setting = SETTINGS[dataset]
    for name in names(dataset):
        model, entry = build(name, dataset), ZOO[dataset].get(name)
        yield {
            "dataset": dataset,
            "name": name,
            "parameters": sum(p.numel() for p in model.parameters()),
            "flops": sequence_flops(model, setting) if entry else None,  # a baseline has no convolutions to count
            "paper_parameters_millions": entry.printed_millions if entry else None,
            "reason": entry.reason if entry else "",
            "in_frames": setting.in_frames,
            "leads": setting.leads,
            "height": setting.height,
            "width": setting.width,
        }


def sequence_flops(model: Forecaster, setting: Setting) -> int:
    """The count of a whole forecast. A recurrent network does the same work for every frame but the first, whose state
    is zero, and for every lead: three short sequences tell what a long one costs, sooner. Of others, as a model of the
    user's, nothing is known: it may not even forecast from one frame."""
    from nowcastlab.models.encoder_forecaster import EncoderForecaster
    from nowcastlab.models.flops import count_flops

    def count(frames: int, leads: int) -> int:
        return count_flops(model, frames=frames, leads=leads, height=setting.height, width=setting.width)

    if not isinstance(model, EncoderForecaster):
        return count(setting.in_frames, setting.leads)
    shortest = count(1, 1)
    a_frame, a_lead = count(2, 1) - shortest, count(1, 2) - shortest
    return shortest + (setting.in_frames - 1) * a_frame + (setting.leads - 1) * a_lead


def table_line(row: dict[str, Any]) -> str:
    flops = f"{row['flops'] / 1e9:,.1f}" if row["flops"] is not None else "-"
    line = f"{row['dataset']:8} {row['name']:16} {row['parameters']:>11,} {flops:>8}"
    if row["paper_parameters_millions"] is not None:
        line += f"   {row['paper_parameters_millions']:.2f}M"
    return line + (f": {row['reason']}" if row["reason"] else "")
