"""`denoise`: what stands still and is not rain is found, in bounded memory, by the paper's arithmetic."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from data_pipeline.archive_layout import ExclusionMap, read_exclusion, write_exclusion
from data_pipeline.boundary import beyond_circle, read_boundary
from data_pipeline.denoise import command
from data_pipeline.outliers import LevelCounts, count_levels, find_outliers, level_classes, root_of_pseudo_inverse
from data_pipeline.pictures import draw_distances
from data_pipeline.synth.days import Sky, SyntheticPlan
from nowcastlab.errors import ConfigError, CorruptStore, StoreError
from nowcastlab.store import StoreWriter, open_store, schema

PLAN = SyntheticPlan(start=dt.date(2020, 5, 1), days=8, size=64, seed=1, interval_minutes=12)


@pytest.fixture(scope="module")
def sky() -> Sky:
    return Sky(PLAN)


@pytest.fixture(scope="module")
def archive(sky: Sky, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight synthetic days with clutter, a sun spike and speckle on the sea; the corners empty, nothing excluded."""
    path = tmp_path_factory.mktemp("denoise") / "archive.zarr"
    with StoreWriter.create(
        path, dates=PLAN.dates, grid=(64, 64), interval_minutes=12, km_per_pixel=8.0, title="synthetic"
    ) as writer:
        for date in PLAN.dates:
            day = sky.day(date)
            writer.commit(writer.write_day(date, day.minutes, day.frames))
    return path


def run(store: Path, *options: str) -> dict[str, Any]:
    result = CliRunner().invoke(command, [str(store), "--json", *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def random_levels(locations: tuple[int, int], frames: int, seed: int = 0) -> LevelCounts:
    rng = np.random.default_rng(seed)
    counts = np.zeros((locations[0] * locations[1], 256), np.uint32)
    counts[:, 80:120] = rng.poisson(frames * rng.uniform(0.001, 0.01, 40), (len(counts), 40))
    return LevelCounts(counts=counts, frames=frames, grid=locations)


def test_planted_clutter_and_sun_spikes_are_found_and_next_to_nothing_else(archive: Path, sky: Sky) -> None:
    levels = count_levels(open_store(str(archive)), open_store(str(archive)).days)
    inside = ~sky.exclusion.out_boundary
    planted = sky.exclusion.outlier & inside
    found = find_outliers(levels, inside).outlier
    assert planted.sum() > 40
    assert found[planted].mean() >= 0.95
    assert (found & ~planted).sum() <= 0.01 * (inside & ~planted).sum()


def test_the_command_writes_the_map_and_only_with_leave(archive: Path, sky: Sky, tmp_path: Path) -> None:
    before = open_store(str(archive)).digest
    dry = run(archive, "--dry-run", "--figures", str(tmp_path / "figures"))
    assert open_store(str(archive)).digest == before == dry["digest"]
    assert {file.name for file in (tmp_path / "figures").iterdir()} == {"mahalanobis_distance.png", "excluded.png"}

    wet = run(archive)
    store = open_store(str(archive))
    assert store.digest == wet["digest"] != before
    assert int(store.excluded.sum()) == wet["out_of_boundary"] + wet["outliers"]
    # the corners were detected, not told
    assert store.excluded[sky.exclusion.out_boundary].all()
    assert wet["out_of_boundary"] == sky.exclusion.out_boundary.sum()
    assert run(archive)["digest"] == wet["digest"]


def test_the_figure_names_the_threshold_that_was_used() -> None:
    distance = np.array([1.0, 2.0, 9.0])
    figure = draw_distances(distance, distance > 5, threshold=5.0, deviations=4.5, rng=np.random.default_rng(0))
    assert "mean + 4.5 std = 5.0" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_what_a_store_excludes_already_stays_unless_fresh(archive: Path) -> None:
    with StoreWriter.open(archive) as writer:
        mine = np.zeros((64, 64), bool)
        mine[30:32, 5:9] = True
        writer.set_excluded(mine)
    assert run(archive, "--dry-run")["kept_excluded"] > 0
    assert run(archive, "--dry-run", "--fresh")["kept_excluded"] == 0


def test_a_map_that_was_cut_short_is_made_anew_by_fresh(archive: Path) -> None:
    schema.write_excluded(schema.open_for_writing(archive), np.ones((64, 64), bool))  # killed before the record
    with pytest.raises(CorruptStore, match=r"is not the one that was committed.*denoise .* --fresh"):
        run(archive)
    assert run(archive, "--fresh")["outliers"] > 0
    assert not open_store(str(archive)).excluded.all()


def test_clutter_at_a_level_that_nothing_else_shows_stays_found_at_the_second_look() -> None:
    levels = random_levels((40, 30), 1000)
    levels.counts[77, 200] = 600
    assert find_outliers(levels, np.ones((40, 30), bool), echoes_per_class=0, looks=2).outlier.flat[77]


def test_counts_do_not_depend_on_how_frames_come_in_days(archive: Path) -> None:
    store = open_store(str(archive))
    levels = count_levels(store, store.days)
    pixels = np.concatenate([store.read_day(day.date)[1] for day in store.days]).reshape(levels.frames, -1)
    for location in (0, 2015, 2080, 4095):
        expected = np.bincount(pixels[:, location], minlength=256)
        assert levels.counts[location, 1:].tolist() == expected[1:].tolist()


def test_as_published_is_the_papers_formula_by_numpys_pseudo_inverse() -> None:
    levels = random_levels((40, 30), 1000)
    inside = np.ones((40, 30), bool)
    inside[:5] = False
    found = find_outliers(levels, inside, echoes_per_class=0, looks=1)

    ratio = levels.counts[inside.ravel(), 1:] / levels.frames
    centred = ratio - ratio.mean(0)
    inverse = np.linalg.pinv(np.cov(ratio.T), hermitian=True)
    distance = np.sqrt(np.einsum("ni,ij,nj->n", centred, inverse, centred))
    assert found.classes == 255
    assert found.rank == 40  # the other levels were never seen
    np.testing.assert_allclose(found.distance[inside], distance, rtol=1e-7)
    assert found.threshold == pytest.approx(distance.mean() + 3 * distance.std())
    assert np.isnan(found.distance[~inside]).all()
    assert not found.outlier[~inside].any()


def test_with_fewer_locations_than_levels_the_pseudo_inverse_stays_within_what_varies() -> None:
    levels = random_levels((5, 4), 1000)
    found = find_outliers(levels, np.ones((5, 4), bool), echoes_per_class=0, looks=1)
    assert found.rank == 19  # twenty points span nineteen directions
    # then every point lies equally far out: (N - 1) / sqrt(N)
    np.testing.assert_allclose(found.distance, 19 / np.sqrt(20), rtol=1e-6)


def test_the_pseudo_inverse_satisfies_penroses_conditions() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(500, 6)) @ rng.normal(size=(6, 30)) * 1e-4
    covariance = np.cov(features.T)
    root = root_of_pseudo_inverse(covariance)
    inverse = root @ root.T
    assert root.shape == (30, 6)
    np.testing.assert_allclose(covariance @ inverse @ covariance, covariance, atol=1e-12 * covariance.max())
    np.testing.assert_allclose(inverse @ covariance @ inverse, inverse, atol=1e-6 * inverse.max())


def test_rare_levels_join_their_neighbours_and_common_ones_stand_alone() -> None:
    seen = np.zeros(255)
    seen[[0, 1, 2, 10, 200]] = [3.0, 0.5, 2.0, 5.0, 0.4]
    # level 1 alone; 2 waits for 3; 4 to 11; and what is above 11, seen 0.4 times, joins that class
    assert level_classes(seen, 2.0).tolist() == [0, 1, 3]
    assert level_classes(seen, 0.0).tolist() == list(range(255))


def test_the_boundary_may_be_a_file(archive: Path, sky: Sky, tmp_path: Path) -> None:
    write_exclusion(tmp_path, ExclusionMap(np.zeros((64, 64), bool), sky.exclusion.out_boundary))
    Image.fromarray((sky.exclusion.out_boundary * 255).astype(np.uint8)).save(tmp_path / "boundary.png")
    for file in ("mask_dat.npz", "boundary.png"):
        result = run(archive, "--dry-run", "--boundary", str(tmp_path / file))
        assert result["out_of_boundary"] == sky.exclusion.out_boundary.sum()


def test_the_official_boundary_is_read_from_its_file(shared_data: Path) -> None:
    path = shared_data / "hko7" / "mask_dat.npz"
    assert read_boundary(path).sum() == 50_260
    # and is a circle, give or take its rim
    assert (beyond_circle((480, 480)) != read_exclusion(path).out_boundary).mean() < 0.005


def test_a_boundary_that_cannot_be_is_refused_with_what_can(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one of: detect, circle, store, none"):
        run(archive, "--dry-run", "--boundary", "square")
    Image.fromarray(np.zeros((3, 3), np.uint8)).save(tmp_path / "small.png")
    with pytest.raises(ConfigError, match=r"is \(3, 3\), the store's grid \(64, 64\)"):
        run(archive, "--dry-run", "--boundary", str(tmp_path / "small.png"))


@pytest.mark.parametrize("deviations", ["-1", "0", "nan", "inf"])
def test_deviations_that_would_take_all_or_nothing_for_outliers_are_refused(deviations: str) -> None:
    result = CliRunner().invoke(command, ["any.zarr", "--deviations", deviations])
    assert result.exit_code == 2
    assert "Invalid value for '--deviations'" in result.output


def test_too_short_an_archive_does_not_pass_dry_places_for_out_of_range(tmp_path: Path) -> None:
    path, date = tmp_path / "short.zarr", dt.date(2020, 5, 1)
    with StoreWriter.create(
        path, dates=[date], grid=(8, 8), interval_minutes=60, km_per_pixel=1.0, title="short"
    ) as writer:
        frames = np.zeros((24, 8, 8), np.uint8)
        frames[3, 2:5, 2:5] = 100
        minutes = (date - dt.date(1970, 1, 1)).days * 1440 + 60 * np.arange(24)
        writer.commit(writer.write_day(date, minutes, frames))
    with pytest.raises(StoreError, match="too few to tell out of range from dry"):
        run(path)
    assert run(path, "--boundary", "none", "--dry-run")["out_of_boundary"] == 0
