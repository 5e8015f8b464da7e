"""The copy of a store on a node's own disk: made once, whole, whoever asks and whatever happens on the way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from nowcastlab.errors import CorruptStore, StoreError
from nowcastlab.store import open_near, open_store
from nowcastlab.store.local_copy import copy_here

# Opens the copy, says which files it found there by inode, and the first frame's sum.
READER = """
import os, sys
from nowcastlab.store import open_near
store = open_near(sys.argv[1], sys.argv[2])
assert store.url.startswith(os.environ["NOWCASTLAB_LOCAL_STORE"]), store.url
print(os.stat(store.url).st_ino, int(store.read(store.minutes()[:40]).pixels.sum()))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NOWCASTLAB_LOCAL_STORE", str(tmp_path / "near"))
    return tmp_path / "near"


def digest_of(store: Path) -> str:
    return open_store(str(store)).digest


def read(store: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", READER, str(store), digest_of(store)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_without_a_folder_for_copies_the_store_is_read_where_it_is(
    tiny_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOWCASTLAB_LOCAL_STORE", raising=False)
    assert open_near(str(tiny_store), digest_of(tiny_store)).url == str(tiny_store)


def test_the_copy_holds_the_same_frames(tiny_store: Path, folder: Path) -> None:
    source = open_store(str(tiny_store))
    near = open_near(str(tiny_store), source.digest)
    assert Path(near.url).parent == folder
    assert near.digest == source.digest
    np.testing.assert_array_equal(near.read(source.minutes()).pixels, source.read(source.minutes()).pixels)
    np.testing.assert_array_equal(near.excluded, source.excluded)


def test_the_copy_needs_the_store_no_more(tiny_store: Path, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_store, tmp_path / "far.zarr")
    digest = digest_of(tiny_store)
    first = open_near(str(tmp_path / "far.zarr"), digest)
    shutil.rmtree(tmp_path / "far.zarr")
    again = open_near(str(tmp_path / "far.zarr"), digest)
    np.testing.assert_array_equal(again.excluded, first.excluded)
    assert again.read(again.minutes()[:3]).present.all()


def test_processes_that_start_at_once_share_one_copy(tiny_store: Path, folder: Path) -> None:
    readers = [read(tiny_store) for _ in range(4)]
    results = [reader.communicate(timeout=120) for reader in readers]
    assert [reader.returncode for reader in readers] == [0] * 4, results
    assert len({out for out, _ in results}) == 1  # one inode, one sum
    assert [path.name for path in folder.iterdir() if not path.name.startswith(".")] == [
        f"{digest_of(tiny_store)[:32]}.zarr"
    ]


def test_a_copy_that_was_killed_is_finished_by_the_next_process(tiny_store: Path, folder: Path) -> None:
    digest = digest_of(tiny_store)
    copying = folder / f".{digest[:32]}.zarr.copying"
    # a source whose last file never comes: the process is killed while it waits for it
    far = folder.parent / "far.zarr"
    shutil.copytree(tiny_store, far)
    shard = far / "pixels" / "c" / "2" / "0" / "0"
    kept = shard.read_bytes()
    shard.unlink()
    os.mkfifo(shard)
    process = subprocess.Popen([sys.executable, "-c", READER, str(far), digest], stderr=subprocess.DEVNULL)
    first = copying / "pixels" / "c" / "0" / "0" / "0"
    deadline = time.monotonic() + 60
    while not first.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert copying.exists()
    inode = first.stat().st_ino
    shard.unlink()
    shard.write_bytes(kept)
    near = Path(open_near(str(far), digest).url)
    assert (near / "pixels" / "c" / "0" / "0" / "0").stat().st_ino == inode  # what was there was not fetched again
    assert not copying.exists()


def test_half_a_shard_of_a_killed_copy_is_fetched_again(tiny_store: Path, folder: Path) -> None:
    digest = digest_of(tiny_store)
    half = folder / f".{digest[:32]}.zarr.copying" / "pixels" / "c" / "0" / "0" / "0"
    half.parent.mkdir(parents=True)
    whole = (tiny_store / "pixels" / "c" / "0" / "0" / "0").read_bytes()
    half.write_bytes(whole[: len(whole) // 2])
    near = open_near(str(tiny_store), digest)
    assert near.read(near.minutes()).present.all()


def test_a_copy_with_one_wrong_byte_is_refused_and_made_anew(tiny_store: Path, folder: Path) -> None:
    digest = digest_of(tiny_store)
    wrong = folder / f".{digest[:32]}.zarr.copying" / "pixels" / "c" / "0" / "0" / "0"
    wrong.parent.mkdir(parents=True)
    content = bytearray((tiny_store / "pixels" / "c" / "0" / "0" / "0").read_bytes())
    content[len(content) // 3] ^= 1
    wrong.write_bytes(content)  # of the right size, as a disk may leave it
    with pytest.raises(CorruptStore, match=r"not what was committed.*2015-06-01"):
        open_near(str(tiny_store), digest)
    assert open_near(str(tiny_store), digest).digest == digest


def test_a_copy_that_lost_a_shard_is_made_anew(tiny_store: Path, folder: Path) -> None:
    digest = digest_of(tiny_store)
    near = open_near(str(tiny_store), digest)
    (Path(near.url) / "pixels" / "c" / "1" / "0" / "0").unlink()
    again = open_near(str(tiny_store), digest)
    assert again.read(again.minutes()).present.all()


def test_another_store_under_the_same_path_is_not_copied(tiny_store: Path, folder: Path) -> None:
    store = open_near(str(tiny_store), "0" * 64)
    assert store.url == str(tiny_store)
    assert not [path for path in folder.iterdir() if path.suffix == ".zarr"]


def test_a_folder_that_cannot_be_written_is_named(tiny_store: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"Cannot keep a copy of .*unset it to read the store where it is"):
        copy_here(str(tiny_store), digest_of(tiny_store), tmp_path / "file" / "near")


def test_a_trial_trains_and_tests_on_the_copy(tiny_store: Path, folder: Path, tmp_path: Path) -> None:
    from nowcastlab.config import radar_config
    from nowcastlab.sweep import Arm, Radar, Sweep, run_trial

    digest = digest_of(tiny_store)
    far = tmp_path / "far.zarr"
    shutil.copytree(tiny_store, far)
    config = radar_config("convgru", store=str(far), threads=1, max_steps=1, **{"data.valid_windows": 1})
    sweep = Sweep(
        name="near",
        question="?",
        scale="demo",
        arms=[Arm(name="ConvGRU", config=config)],
        seeds=(1,),
        radar=Radar(store=str(far), digest=digest, limit=1),
    )
    open_near(str(far), digest)
    shutil.rmtree(far)  # nothing but the copy is left to read
    assert run_trial(sweep.trials[0], tmp_path / "trial")["status"] == "finished"
