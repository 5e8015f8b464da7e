"""Moving digits: the paper's physics by hand, against an independent renderer, and against the official parameters."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

from nowcastlab.errors import ConfigError, CorruptStore, NowcastlabError, StoreError
from nowcastlab.moving_digits import Digits, Motion, MovingDigits, generated_test, load_digits, official_test
from nowcastlab.moving_digits.digits import MNIST, SKLEARN, TRAIN_IMAGES
from nowcastlab.moving_digits.motion import read_official

SQUARE = 10  # pixels wide: the shape whose centre and area are easy to find again


@pytest.fixture(scope="module")
def digits() -> Digits:
    """Forty blobs of several widths and heights, cheap and with nothing symmetric about them."""
    rng = np.random.default_rng(0)
    images = np.zeros((40, 20, 20), np.uint8)
    for image in images:
        height, width = rng.integers(4, 21, size=2)
        image[:height, :width] = rng.integers(1, 256, size=(height, width))
    return Digits("blobs", images)


@pytest.fixture(scope="module")
def source(digits: Digits) -> MovingDigits:
    return MovingDigits(digits)


def square_source(**settings: Any) -> MovingDigits:
    return MovingDigits(Digits("square", np.full((1, SQUARE, SQUARE), 255, np.uint8)), count=1, **settings)


def motion(
    *,
    centre: tuple[float, float] = (32, 32),
    heading_rad: float = 0,
    speed: float = 0,
    rotation_deg: float = 0,
    scale: float = 1,
    illumination: float = 1,
) -> Motion:
    """One square that does nothing but what it is told; 64 - 10 pixels are free for its corner."""
    return Motion(
        digit=np.array([[0]]),
        corner=(np.array([[centre]], np.float64) - SQUARE / 2) / (64 - SQUARE),
        heading_rad=np.array([[heading_rad]], np.float64),
        speed=np.array([[speed]], np.float64),
        rotation_deg=np.array([[rotation_deg]], np.float64),
        scale=np.array([[scale]], np.float64),
        illumination=np.array([illumination], np.float64),
    )


def centres(frames: NDArray[np.float32]) -> NDArray[np.float64]:
    """x, y of the ink's centre in each frame, counted so that a digit whose corner is 0 has its centre at width / 2."""
    return np.array([ndimage.center_of_mass(frame)[::-1] for frame in frames]) + 0.5


def reference(source: MovingDigits, motion: Motion, n: int) -> NDArray[np.float32]:
    """One sequence by the book: whole-frame scipy warps, closed formulas for scale, light and angle."""
    size = source.size
    sequence = np.zeros((source.frames, size, size))
    growth = np.cumsum([0] + [1 if (t // 5) % 2 else -1 for t in range(1, source.frames)])
    for d in range(motion.digit.shape[1]):
        image = source.cut_out(int(motion.digit[n, d])) / 255.0
        half = np.array(image.shape) / 2  # y, x from here on
        centre = motion.corner[n, d, ::-1] * (size - 2 * half) + half
        heading = motion.heading_rad[n, d]
        velocity = motion.speed[n, d] * np.array([np.sin(heading), np.cos(heading)])
        for t in range(source.frames):
            if t:
                centre = centre + velocity
                velocity = np.where((centre < 10) | (centre > size - 10), -velocity, velocity)
                centre = np.clip(centre, 10, size - 10)
            angle = np.deg2rad(t * motion.rotation_deg[n, d])
            # A turn counter-clockwise on the screen, where y points down, seen backwards from frame to image.
            back = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
            back /= motion.scale[n, d] ** growth[t]
            padded = np.pad(image, 1)  # scipy's own edge would cut off the rim that fades to zero
            warped = ndimage.affine_transform(
                padded, back, half + 1 - back @ centre, output_shape=(size, size), order=1, mode="constant"
            )
            sequence[t] = np.maximum(sequence[t], warped * motion.illumination[n] ** -growth[t])
    return sequence.astype(np.float32)


# What a sequence depends on


def test_a_sequence_depends_on_its_seed_and_index_alone(source: MovingDigits) -> None:
    alone = source.batch(3, [5])[0]
    assert alone.dtype == np.float32
    assert alone.shape == (20, 64, 64)
    np.testing.assert_array_equal(source.batch(3, [9, 5, 0])[1], alone)
    assert not np.array_equal(source.batch(4, [5])[0], alone)


def test_a_training_step_can_be_made_again_and_shares_nothing_with_the_next(source: MovingDigits) -> None:
    step_7 = source.training_batch(seed=1, step=7, batch_size=2)
    np.testing.assert_array_equal(source.batch(1, [14, 15]), step_7)
    step_8 = source.training_batch(seed=1, step=8, batch_size=2)
    assert not any(np.array_equal(one, other) for one in step_7 for other in step_8)


def test_the_splits_never_share_a_sequence(source: MovingDigits) -> None:
    train, valid = (source.motion(0, range(50), split=split) for split in ("train", "valid"))
    test = generated_test(source, count=50).motion
    lights = np.concatenate([train.illumination, valid.illumination, test.illumination])
    assert len(np.unique(lights)) == 150


def test_the_random_streams_stay_what_they_are(source: MovingDigits) -> None:
    """A published run must be repeatable: whoever changes these numbers raises the generator's version."""
    first = source.motion(0, [0])
    np.testing.assert_allclose(first.illumination, [0.8260527062245854], rtol=1e-12)
    np.testing.assert_allclose(first.speed[0], [2.9347245419377024, 1.8835354661197277, 1.0137083993594966], rtol=1e-12)


def test_the_draws_fill_the_paper_s_ranges(source: MovingDigits) -> None:
    drawn = source.motion(0, range(2000))
    for values, low, high in [
        (drawn.speed, 0, 3.6),
        (drawn.scale, 1 / 1.1, 1.1),
        (drawn.rotation_deg, -15, 15),
        (drawn.illumination, 0.6, 1),
        (drawn.heading_rad, 0, 2 * np.pi),
        (drawn.corner, 0, 1),
    ]:
        span = high - low
        assert low <= values.min() < low + 0.01 * span
        assert high - 0.01 * span < values.max() < high
        assert abs(values.mean() - (low + high) / 2) < 0.02 * span
    assert set(drawn.digit.ravel()) == set(range(40))


def test_the_draws_are_independent_of_each_other(source: MovingDigits) -> None:
    drawn = source.motion(0, range(2000))
    rows = [*drawn.corner.reshape(2000, 6).T, drawn.illumination]
    for one in (drawn.digit, drawn.heading_rad, drawn.speed, drawn.rotation_deg, drawn.scale):
        rows.extend(one.T)
    correlation = np.corrcoef(np.stack(rows)) - np.eye(len(rows))
    assert len(rows) == 22
    assert np.abs(correlation).max() < 0.1  # 4.5 standard errors of 1/sqrt(2000)


def test_the_release_preset_turns_twice_as_fast_and_differs_in_nothing_else(digits: Digits) -> None:
    paper, release = (MovingDigits(digits, preset=preset).motion(5, range(10)) for preset in ("paper", "release"))
    np.testing.assert_allclose(release.rotation_deg, 2 * paper.rotation_deg)
    for name in ("digit", "corner", "heading_rad", "speed", "scale", "illumination"):
        np.testing.assert_array_equal(getattr(release, name), getattr(paper, name))


def test_fewer_digits_are_the_first_of_more(digits: Digits) -> None:
    two, three = (MovingDigits(digits, count=count).motion(0, range(5)) for count in (2, 3))
    np.testing.assert_array_equal(three.speed[:, :2], two.speed)


# The physics, by hand


def test_the_first_frame_shows_the_digit_as_it_is() -> None:
    image = np.arange(1, 13, dtype=np.uint8).reshape(1, 4, 3)
    still = motion()
    in_the_corner = dataclasses.replace(still, corner=np.zeros((1, 1, 2)))
    frame = MovingDigits(Digits("ramp", image), count=1).render(in_the_corner)[0, 0]
    np.testing.assert_allclose(frame[:4, :3], image[0] / np.float32(255))
    assert frame[4:].sum() + frame[:, 3:].sum() == 0


def test_a_digit_moves_by_its_velocity() -> None:
    frames = square_source(frames=4).render(motion(speed=2.5, heading_rad=np.arctan2(4, 3)))[0]
    # 2.5 pixels along (3, 4)/5: 1.5 to the right, 2 down
    np.testing.assert_allclose(centres(frames), [[32 + 1.5 * t, 32 + 2 * t] for t in range(4)], atol=1e-5)


def test_a_digit_bounces_at_ten_pixels_from_the_edge() -> None:
    frames = square_source(frames=5).render(motion(centre=(50, 32), speed=3))[0]
    # 56 lies outside [10, 54]: back onto the edge, then to the left
    np.testing.assert_allclose(centres(frames)[:, 0], [50, 53, 54, 51, 48], atol=1e-5)


def test_a_digit_that_begins_outside_the_margin_is_put_onto_it_and_turned_whichever_way_it_went() -> None:
    frames = square_source(frames=4).render(motion(centre=(6, 32), speed=1))[0]
    # 7 is outside: to 10, now leftward; 9 is outside: to 10, now rightward; 11
    np.testing.assert_allclose(centres(frames)[:, 0], [6, 10, 10, 11], atol=1e-5)


def test_the_light_falls_for_four_frames_rises_for_five_and_goes_above_one() -> None:
    frames = square_source().render(motion(illumination=0.6))[0]
    exponents = [0, 1, 2, 3, 4, 3, 2, 1, 0, -1, 0, 1, 2, 3, 4, 3, 2, 1, 0, -1]
    np.testing.assert_allclose(frames.max(axis=(1, 2)), 0.6 ** np.array(exponents, float), rtol=1e-6)
    assert frames.max() == pytest.approx(1.6667, abs=1e-4)


def test_the_size_shrinks_while_the_light_falls_and_grows_while_it_rises() -> None:
    frames = square_source().render(motion(scale=1.08))[0]
    exponents = -np.array([0, 1, 2, 3, 4, 3, 2, 1, 0, -1, 0, 1, 2, 3, 4, 3, 2, 1, 0, -1])
    area = frames.sum(axis=(1, 2))
    np.testing.assert_allclose(area / area[0], 1.08 ** (2.0 * exponents), rtol=0.06)  # a step is 17%


def test_a_digit_turns_counter_clockwise_about_its_centre() -> None:
    image = np.full((1, SQUARE, SQUARE), 50, np.uint8)
    image[:, :, SQUARE // 2 :] = 250  # the bright half to the right
    frames = MovingDigits(Digits("halves", image), count=1, frames=2).render(motion(rotation_deg=90))[0]
    before, after = centres(frames) - 32
    # (250 * 5 * 2.5 - 50 * 5 * 2.5) / (250 * 5 + 50 * 5) = 1.667 pixels to the right of the middle. The release turns
    # about width / 2, half a pixel right of and below the middle: (1.167, -0.5) from there becomes (-0.5, -1.167).
    np.testing.assert_allclose(before, [1.667, 0], atol=0.001)
    np.testing.assert_allclose(after, [-0.5 + 0.5, -1.167 + 0.5], atol=0.001)


def test_where_digits_overlap_the_brighter_shows() -> None:
    images = np.stack([np.full((10, 10), 255, np.uint8), np.full((10, 10), 100, np.uint8)])
    both = Motion(
        digit=np.array([[1, 0]]),
        corner=np.zeros((1, 2, 2)),
        heading_rad=np.zeros((1, 2)),
        speed=np.zeros((1, 2)),
        rotation_deg=np.zeros((1, 2)),
        scale=np.ones((1, 2)),
        illumination=np.ones(1),
    )
    frame = MovingDigits(Digits("two", images), count=2, frames=1).render(both)[0, 0]
    assert np.all(frame[:10, :10] == 1)


def test_empty_rows_and_columns_are_dropped_inside_a_digit_too() -> None:
    image = np.zeros((1, 9, 9), np.uint8)
    image[0, 2, 3], image[0, 6, 7] = 50, 200
    cut = MovingDigits(Digits("broken", image)).cut_out(0)
    assert cut.tolist() == [[50, 0], [0, 200]]


@pytest.mark.parametrize("preset", ["paper", "release"])
def test_the_frames_agree_with_an_independent_renderer(digits: Digits, preset: str) -> None:
    source = MovingDigits(digits, preset=preset)
    drawn = source.motion(11, range(3))
    frames = source.render(drawn)
    for n in range(3):
        np.testing.assert_allclose(frames[n], reference(source, drawn, n), atol=2e-6)


# Other sizes


def test_a_small_frame_shows_the_same_scene_at_half_the_resolution() -> None:
    digits = load_digits(SKLEARN)
    large, small = (MovingDigits(digits, size=size, count=2).batch(2, range(10)) for size in (64, 32))
    averaged = large.reshape(10, 20, 32, 2, 32, 2).mean(axis=(3, 5))
    assert np.corrcoef(averaged.ravel(), small.ravel())[0, 1] > 0.9
    assert small.mean() == pytest.approx(large.mean(), rel=0.05)


def test_frames_and_their_number_may_be_other_than_the_paper_s(digits: Digits) -> None:
    assert MovingDigits(digits, size=48, count=1, frames=7).batch(0, [0]).shape == (1, 7, 48, 48)
    long = MovingDigits(digits, frames=30).batch(0, [0])
    np.testing.assert_array_equal(long[:, :20], MovingDigits(digits).batch(0, [0]))


# Identity


def test_the_digest_names_the_frames(digits: Digits) -> None:
    base = MovingDigits(digits)
    assert MovingDigits(Digits("renamed", digits.images.copy())).digest == base.digest
    others = [
        MovingDigits(digits, preset="release"),
        MovingDigits(digits, size=32),
        MovingDigits(digits, count=2),
        MovingDigits(digits, frames=10),
        MovingDigits(Digits("fewer", digits.images[:39])),
    ]
    assert len({source.digest for source in [base, *others]}) == 6


def test_a_source_says_which_digits_it_shows(source: MovingDigits, digits: Digits) -> None:
    assert source.describe()["digits"] == "blobs"
    assert source.describe()["digits_digest"] == digits.digest
    assert "3 digits of 'blobs'" in repr(source)


# Digits


def test_without_mnist_the_digits_are_scikit_learn_s_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOWCASTLAB_CACHE", str(tmp_path))
    fallback = load_digits()
    assert fallback.name == "sklearn-digits"
    assert len(fallback) == 1200
    cut = MovingDigits(fallback)
    heights = [cut.cut_out(i).shape[0] for i in range(1200)]
    assert 19 < np.mean(heights) < 21  # MNIST's: 19.7
    # MNIST's mean ink is 103 full pixels
    assert fallback.images.sum(axis=(1, 2)).mean() / 255 == pytest.approx(103, rel=0.05)


def test_mnist_asked_for_by_name_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOWCASTLAB_CACHE", str(tmp_path))
    with pytest.raises(StoreError, match=r"python -m data_pipeline digits"):
        load_digits(MNIST)


def test_a_damaged_cache_is_an_error_and_not_other_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOWCASTLAB_CACHE", str(tmp_path))
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / TRAIN_IMAGES).write_bytes(b"half a file")
    with pytest.raises(CorruptStore, match="6bbc9ace898e44ae57da46a324031adb"):
        load_digits()


# Test sets


def test_the_generated_test_set_is_always_the_same_and_rendered_in_any_order(source: MovingDigits) -> None:
    test = generated_test(source, count=20)
    assert len(test) == 20
    np.testing.assert_array_equal(test.batch([17, 3]), source.batch(0, [17, 3], split="test"))


def test_the_official_parameters_are_what_the_release_draws(shared_data: Path) -> None:
    official = read_official(shared_data / "mnistpp" / "movingmnist_10000_nodistr.npz")
    assert official.corner.shape == (10_000, 3, 2)
    assert official.digit.max() == 39_999
    assert 29.9 < official.rotation_deg.max() < 30  # not the paper's 15
    assert 3.59 < official.speed.max() < 3.6


def test_the_official_test_set_comes_out_of_its_parameters(shared_data: Path) -> None:
    """The positions by hand: sequence 0, first digit, lies at 4.1% and 47.1% of the room its box leaves."""
    rng = np.random.default_rng(0)
    stand_in = Digits(MNIST, rng.integers(1, 256, size=(40_000, 6, 5), dtype=np.uint8))
    source = MovingDigits(stand_in, preset="release")
    test = official_test(source, shared_data / "mnistpp" / "movingmnist_10000_nodistr.npz")
    assert (test.name, len(test)) == ("official", 10_000)
    frames = test.batch([0, 9_999])
    np.testing.assert_allclose(frames[0], reference(source, test.motion, 0), atol=2e-6)
    x, y = 0.04145700958684084 * (64 - 5), 0.4714394897026638 * (64 - 6)
    ink = np.argwhere(frames[0, 0, :, :12] > 0)  # the other two digits begin further right
    np.testing.assert_array_equal(ink.min(axis=0), [int(y), int(x)])  # the rim reaches one pixel out, to the floor


def test_the_official_test_set_with_mnist_itself(shared_data: Path) -> None:
    digits = load_digits()
    if digits.name != MNIST:
        pytest.skip("MNIST is not in the cache: `python -m data_pipeline digits` puts it there")
    source = MovingDigits(digits, preset="release")
    test = official_test(source, shared_data / "mnistpp" / "movingmnist_10000_nodistr.npz")
    frames = test.batch(range(100))
    assert frames.mean(dtype=np.float64) == pytest.approx(0.0531755161, rel=1e-6)


@pytest.mark.parametrize(
    "settings", [{"preset": "paper"}, {"preset": "release", "size": 32}, {"preset": "release", "frames": 10}]
)
def test_only_the_authors_own_task_is_called_official(shared_data: Path, settings: dict[str, Any]) -> None:
    source = MovingDigits(Digits(MNIST, np.full((40_000, 3, 3), 9, np.uint8)), **settings)
    with pytest.raises(ConfigError, match="Change the source, or test on generated"):
        official_test(source, shared_data / "mnistpp" / "movingmnist_10000_nodistr.npz")


def official_arrays() -> dict[str, Any]:
    return {
        "digit_indices": np.array([[1, 2, 3]]),
        "affine_transforms_multipliers": np.full((1, 3, 2), 0.5),
        "init_velocity_angle": np.ones((1, 3)),
        "init_velocity_magnitude": np.ones((1, 3)),
        "base_rotation_angle": np.ones((1, 3)),
        "scale_variation": np.ones((1, 3)),
        "appearance_mult": np.array([0.7]),
    }


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("digit_indices", np.array([[1, 2, 40_000]]), r"`digit_indices` runs from 1 to 40000"),
        ("scale_variation", np.full((1, 3), 1.2), r"`scale_variation` runs from 1.2 to 1.2, outside \[0.909091, 1.1\]"),
        ("init_velocity_angle", np.full((1, 3), np.nan), r"`init_velocity_angle` runs from nan"),
        ("appearance_mult", np.array([0.7, 0.8]), r"`appearance_mult` must be \(1,\) numbers, got \(2,\)"),
        ("base_rotation_angle", np.array([[{}, {}, {}]], dtype=object), r"not a readable npz"),
        ("init_velocity_magnitude", None, r"no array 'init_velocity_magnitude'"),
    ],
)
def test_a_parameter_file_that_cannot_be_right_is_refused(tmp_path: Path, name: str, value: Any, message: str) -> None:
    arrays = official_arrays()
    arrays[name] = value
    np.savez(tmp_path / "given.npz", **{key: array for key, array in arrays.items() if array is not None})
    with pytest.raises(CorruptStore, match=message):
        read_official(tmp_path / "given.npz")


def test_a_cut_off_parameter_file_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "given.npz", **official_arrays())
    whole = (tmp_path / "given.npz").read_bytes()
    (tmp_path / "given.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorruptStore, match="Get it again"):
        read_official(tmp_path / "given.npz")


# Mistakes


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda d: MovingDigits(d, preset="papr"), "No preset 'papr'. The presets are: paper, release."),
        (lambda d: MovingDigits(d, size=8), r"`size` \(=8\) must be at least 16"),
        (lambda d: MovingDigits(d, frames=0), r"`frames` \(=0\) must be at least 1"),
        (lambda d: MovingDigits(d).batch(-1, [0]), r"`seed` \(=-1\)"),
        (lambda d: MovingDigits(d).batch(0, [3, -2]), r"smallest: -2"),
        (lambda d: MovingDigits(d).batch(0, [0], split="testing"), "The splits are: train, valid, test"),
        (lambda d: MovingDigits(Digits("one", d.images[:1])).render(MovingDigits(d).motion(0, [0])), "has 0 to 0"),
        (lambda d: MovingDigits(Digits("big", np.ones((1, 80, 80), np.uint8))), "80x80 pixels in a 64x64 frame"),
        (lambda d: Digits("blank", np.zeros((2, 5, 5), np.uint8)), "Digit 0 of 'blank' has no ink"),
        (lambda d: load_digits("MNIST"), "There are: mnist, sklearn-digits"),
        (lambda d: read_official("nowhere.npz"), "No test parameters at nowhere.npz"),
    ],
)
def test_a_mistake_is_named_with_its_value_and_the_next_step(digits: Digits, attempt: Any, message: str) -> None:
    with pytest.raises(NowcastlabError, match=message):
        attempt(digits)
