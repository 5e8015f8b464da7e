"""`denoise`: find the locations whose echoes are not weather, and exclude them from all scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from data_pipeline.days import days_of
from nowcastlab.cli.verbs import FiniteRange
from nowcastlab.progress import progress
from nowcastlab.units import NOISE_BELOW_PIXEL


def as_text(result: dict[str, Any]) -> str:
    whole = result["locations"]
    rows = {
        "frames": f"{result['frames']:,} ({result['split']})",
        "levels": f"{result['classes']} classes, the covariance has rank {result['rank']}; {result['looks']} looks",
        "distance": f"mean {result['mean_distance']:.2f}, threshold {result['threshold']:.2f}",
        "out of boundary": f"{result['out_of_boundary']:,} locations ({result['out_of_boundary'] / whole:.2%})",
        "outliers": f"{result['outliers']:,} locations ({result['outliers'] / whole:.2%})",
        "kept excluded": f"{result['kept_excluded']:,} more that the store excluded before",
        "inliers": f"{result['inliers']:,} locations ({result['inliers'] / whole:.2%})",
        "small echoes": f"{result['small_echo_share']:.2%} of inlier pixels are below {NOISE_BELOW_PIXEL}: masked",
        "written": "no, a dry run" if not result["written"] else f"yes, the digest is now {result['digest']}",
    }
    return "\n".join(f"{name:<17}{value}" for name, value in rows.items())


@click.command()
@click.argument("store")
@click.option(
    "--boundary",
    default="detect",
    show_default=True,
    metavar="detect|circle|store|none|FILE",
    help="What lies out of the radar's range: see above.",
)
@click.option(
    "--split",
    type=click.Choice(["train", "valid", "test"]),
    help="Look only at the days to train, validate or test on.  [default: all]",
)
@click.option(
    "--deviations",
    type=FiniteRange(0, min_open=True),
    default=3.0,
    show_default=True,
    help="An outlier is so many standard deviations above the mean distance.",
)
@click.option("--as-published", is_flag=True, help="Take all 255 levels and a single look, as in the paper.")
@click.option("--fresh", is_flag=True, help="Forget what the store excluded before.")
@click.option("--figures", type=click.Path(file_okay=False, path_type=Path), help="Draw both figures in this folder.")
@click.option("--dry-run", is_flag=True, help="Change nothing in the store.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
def command(
    store: str,
    *,
    boundary: str,
    split: str | None,
    deviations: float,
    as_published: bool,
    fresh: bool,
    figures: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Find ground clutter and sun spikes in STORE and write them into its exclusion map.

    This is the denoising of Shi et al. 2017, appendix. Stage one: each location within the boundary is described by how
    often it shows each level from 1 to 255, and is an outlier if its Mahalanobis distance from all locations exceeds
    the mean distance by three standard deviations. They found 2,824 outliers in all of HKO-7, and 50,260 locations out
    of boundary. Stage two, leaving out echoes below 71, follows from each pixel: nothing is written for it.

    The paper had seven years. To work on weeks as well, levels hardly ever seen are counted with their neighbours, and
    a second look takes mean, covariance and threshold from the inliers of the first, so that strong clutter does not
    hide the weak. --as-published does neither.

    The boundary is detected as the locations that never show any echo, which needs an archive of weeks. For less, say
    `circle` (the largest in the grid), `none`, `store` (what it excludes now), or give a map: an .npz with
    `out_boundary_mask`, such as HKO-7's mask_dat.npz, or a grey PNG, not zero where out of range.

    Locations the store excludes already stay excluded, unless --fresh. Memory: 1 kB a location, whatever the number of
    frames, and one day of frames.

    \b
    Examples:
      python -m data_pipeline denoise work/mine.zarr --dry-run --figures denoise/
      python -m data_pipeline denoise work/hko7.zarr --boundary mask_dat.npz --fresh --as-published
      python -m data_pipeline denoise work/mine.zarr --boundary circle --split train
    """
    from data_pipeline.boundary import boundary_map
    from data_pipeline.outliers import count_levels, find_outliers
    from nowcastlab.store import StoreWriter, open_store

    opened = open_store(store)
    days = days_of(opened, split, to="learn from")
    levels = count_levels(opened, progress(days, label="denoise", unit="day"))
    outside = boundary_map(boundary, levels, opened)
    settings: dict[str, Any] = {"echoes_per_class": 0.0, "looks": 1} if as_published else {}
    found = find_outliers(levels, ~outside, deviations=deviations, **settings)
    before = np.zeros_like(outside) if fresh else opened.excluded
    excluded = outside | found.outlier | before
    digest = opened.digest
    if not dry_run:
        with StoreWriter.open(store) as writer:
            writer.set_excluded(excluded)
        digest = open_store(store).digest

    inliers = int((~excluded).sum())
    result = {
        "store": store,
        "digest": digest,
        "written": not dry_run,
        "split": split or "all splits",
        "frames": levels.frames,
        "boundary": boundary,
        "locations": excluded.size,
        "classes": found.classes,
        "rank": found.rank,
        "looks": found.looks,
        "mean_distance": float(np.nanmean(found.distance)),
        "threshold": found.threshold,
        "out_of_boundary": int(outside.sum()),
        "outliers": int(found.outlier.sum()),
        "kept_excluded": int((before & ~outside & ~found.outlier).sum()),
        "inliers": inliers,
        "small_echo_share": float(levels.small_echoes[~excluded].sum() / max(inliers * levels.frames, 1)),
    }
    click.echo(json.dumps(result, indent=2) if as_json else as_text(result))
    if figures:
        from data_pipeline.pictures import draw_distances, draw_exclusion, save

        distances = draw_distances(
            found.distance[~outside],
            found.outlier[~outside],
            threshold=found.threshold,
            deviations=deviations,
            rng=np.random.default_rng(0),
        )
        save(distances, figures / "mahalanobis_distance.png")
        title = f"{opened.title}: what is never scored"
        save(draw_exclusion(found.outlier, outside, before, title=title), figures / "excluded.png")
        click.echo(f"figures: {figures / 'mahalanobis_distance.png'}, {figures / 'excluded.png'}", err=True)
