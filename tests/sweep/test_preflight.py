"""What can be known to go wrong is said before the first trial, with the next step."""

from __future__ import annotations

import datetime as dt
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import folder_of, small_arm, small_sweep, uri_of
from mlflow import MlflowClient
from test_search import small_search

from nowcastlab.cli.sweep import table_text
from nowcastlab.config import mnist_config, radar_config
from nowcastlab.errors import ConfigError, NowcastlabError, ReportError, StoreError, TrackingError
from nowcastlab.store import StoreWriter, open_store
from nowcastlab.sweep import Arm, Radar, Sweep, SweepFolder, run_sweep, run_trial
from nowcastlab.sweep.preflight import CHECKPOINTS, check_data, check_machines, space_needed
from nowcastlab.sweep.search import Real, Search, SearchFolder
from nowcastlab.sweep.search.driver import run_search
from nowcastlab.training import load_trained


def refused(sweep: Sweep, root: Path, error: type[NowcastlabError], text: str, **options: Any) -> None:
    with pytest.raises(error, match=text):
        run_sweep(sweep, root=root, tracking_uri=options.pop("tracking_uri", uri_of(root)), **options)


# --- the design


def test_an_unknown_model_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"traj-17.*The models are.*traj-l13"):
        mnist_config("traj-17", digits="sklearn-digits")


def test_an_unknown_baseline_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no baseline 'rovr'. They are: last-frame, rover, rover-nonlinear"):
        Arm(name="R", baseline="rovr")


def test_a_setting_that_an_arm_cannot_be_tested_in_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no setting 'ofline'. Its settings are: offline, online"):
        Arm(name="R", baseline="rover", settings=("ofline",))
    with pytest.raises(ConfigError, match=r"no setting 'offline'. Its settings are: digits"):
        replace(small_arm("traj-l2"), settings=("offline",))


def test_a_grid_that_a_network_cannot_halve_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"height \(=18\) does not fit strides .*Use a multiple of 4"):
        small_arm("traj-l2", **{"data.size": 18})


# --- the folder


def test_a_sweep_edited_after_it_started_is_refused_with_what_changed(undisturbed: Path, tmp_path: Path) -> None:
    text = r"changed after it was begun .*test_sequences was 8, now 9.*another name"
    refused(small_sweep(test_sequences=9), undisturbed, ConfigError, text, tracking_uri=uri_of(tmp_path))
    text = "seed 2 is gone"
    refused(small_sweep(seeds=(1, 3)), undisturbed, ConfigError, text, tracking_uri=uri_of(tmp_path))


def test_a_sweep_that_never_started_a_trial_may_be_edited(tmp_path: Path) -> None:
    """A mistake found before the first trial can be mended where it was made."""
    for sweep in (small_sweep(), small_sweep(seeds=(3, 4))):
        refused(sweep, tmp_path, TrackingError, "of no kind", tracking_uri="ftp://nowhere")


def test_two_drivers_of_one_sweep_are_one_too_many(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path, small_sweep())
    folder.path.mkdir(parents=True)
    with open(folder.path / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused(small_sweep(), tmp_path, ConfigError, "running already, in .*small-demo")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused(small_sweep(), tmp_path / "file", ConfigError, r"file/small-demo cannot be used: Not a directory")


# --- the data


def radar_sweep(store: Path) -> Sweep:
    radar = Radar(store=str(store), digest=open_store(str(store)).digest)
    arms = [Arm(name="Last-Frame", baseline="last-frame")]
    return Sweep(name="radar", question="?", scale="demo", arms=arms, radar=radar)


@pytest.fixture
def store(tiny_store: Path, tmp_path: Path) -> Path:
    shutil.copytree(tiny_store, tmp_path / "radar.zarr")
    return tmp_path / "radar.zarr"


def rain_harder(store: Path) -> None:
    """Another store in the place of the first: one day, with more rain."""
    date = dt.date(2015, 6, 5)
    minutes = (date - dt.date(1970, 1, 1)).days * 1440 + 6 * np.arange(40)
    shutil.rmtree(store)
    with StoreWriter.create(
        store,
        dates=[date],
        grid=(24, 24),
        interval_minutes=6,
        km_per_pixel=2.0,
        title="more rain",
        excluded=np.zeros((24, 24), bool),
        splits={date: "test"},
    ) as writer:
        writer.commit(writer.write_day(date, minutes, np.full((40, 24, 24), 100, np.uint8)))


def test_a_store_that_changed_under_a_resumed_sweep_is_refused(store: Path, tmp_path: Path) -> None:
    sweep = radar_sweep(store)
    folder = SweepFolder(tmp_path, sweep)
    with folder.claim():
        run_trial(sweep.trials[0], folder.trial(sweep.trials[0]))
    rain_harder(store)
    text = r"The data changed under the sweep in .*radar.zarr had digest \w{16}, now \w{16}. Put the data back"
    refused(radar_sweep(store), tmp_path, StoreError, text)


def test_a_store_that_changed_under_a_resumed_search_is_refused(store: Path, tmp_path: Path) -> None:
    def radar_search() -> Search:
        config = radar_config("convgru", store=str(store), max_steps=9, validate_every=1, **{"data.valid_windows": 1})
        space = {"learning_rate": Real(low=1e-4, high=1e-2)}
        return small_search(space=space, config=lambda values: replace(config, learning_rate=values["learning_rate"]))

    with SearchFolder(tmp_path, radar_search()).claim():
        pass
    rain_harder(store)
    text = r"The data changed under the search in .*radar.zarr had digest \w{16}, now \w{16}. Put the data back"
    with pytest.raises(StoreError, match=text), SearchFolder(tmp_path, radar_search()).claim():
        pass


def test_a_store_that_changed_since_the_sweep_was_made_is_refused(store: Path, tmp_path: Path) -> None:
    sweep = radar_sweep(store)
    rain_harder(store)
    refused(sweep, tmp_path, StoreError, r"changed under the sweep: its digest was \w{16}, now it is \w{16}")


def test_a_store_to_train_on_is_looked_at_as_it_is_now(store: Path, tmp_path: Path) -> None:
    """Not as it was when this process opened it last."""
    config = radar_config("convgru", store=str(store), max_steps=1, **{"data.valid_windows": 1})
    check_data({"Arm A": config})
    rain_harder(store)
    with pytest.raises(StoreError, match=r"Arm A: .*radar.zarr is not the data this run was set up with"):
        check_data({"Arm A": config})


# --- the code


def trained_with(root: Path, *codes: str) -> None:
    """The first trials of a sweep, as finished by these versions."""
    for trial, code in zip(small_sweep().trials, codes, strict=False):
        path = folder_of(root, trial.key) / "result.json"
        result = json.loads(path.read_text())
        result["environment"]["code"] = code
        path.write_text(json.dumps(result))


@pytest.mark.parametrize(
    ("codes", "text"),
    [
        (
            ["a" * 40],
            r"1 of 4 trials in .*small-demo finished with code a{12}, and this is 0\.\S+: one table cannot hold ",
        ),
        (
            ["a" * 40 + "+changed"] * 3,
            r"3 of 4 .* with code a{12}\+changed, .* Check that version out, with the changes",
        ),
        (
            ["a" * 40],
            r"Check that version out to go on; or do all of them with this one, under another name of the sweep",
        ),
    ],
)
def test_what_another_version_of_the_code_began_is_not_finished_by_this_one(
    codes: list[str], text: str, undisturbed: Path, tmp_path: Path
) -> None:
    """Its table would be refused, after all trials were trained."""
    root = tmp_path / "copy"
    shutil.copytree(undisturbed, root)
    trained_with(root, *codes)
    (folder_of(root, small_sweep().trials[-1].key) / "result.json").unlink()
    refused(small_sweep(), root, ConfigError, text)


def test_a_table_refuses_what_a_sweep_is_refused_for_and_says_how_to_mend_it(undisturbed: Path, tmp_path: Path) -> None:
    """A worker may be started while the code is edited: then it is known only at the end."""
    shutil.copytree(undisturbed, tmp_path / "copy")
    client = MlflowClient(uri_of(tmp_path / "copy"))
    for number, run_id in enumerate(statuses(client.tracking_uri)):
        client.set_tag(run_id, "nowcastlab.code", "a" * 40 + "+changed" * (number % 2))
    text = (
        r"2 versions of the code.* a{16}: .* a{16}\+changed: .* delete the folders of the others' trials, and run the"
    )
    with pytest.raises(ReportError, match=text):
        table_text(small_sweep(), client)


def test_a_finished_sweep_run_again_by_another_version_still_has_its_table(undisturbed: Path, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    shutil.copytree(undisturbed, root)
    before = table_text(small_sweep(), MlflowClient(uri_of(root)))
    trained_with(root, *["a" * 40] * 4)
    assert len(run_sweep(small_sweep(), root=root, tracking_uri=uri_of(root)).finished) == 4
    assert table_text(small_sweep(), MlflowClient(uri_of(root))) == before


# --- space


@pytest.fixture
def one_megabyte(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_no_space_is_seen_before_it_is_missed(one_megabyte: Path, tmp_path: Path) -> None:
    text = r"needs about \d\.\d MB more in .*small-demo, for .* 4 trials, and \d\.\d MB are free there. Make room"
    refused(small_sweep(), one_megabyte, ConfigError, text, tracking_uri=uri_of(tmp_path))


def test_a_search_sees_it_too(one_megabyte: Path, tmp_path: Path) -> None:
    text = r"The search needs about \d+\.\d MB more in .*small-search-demo, for .* 9 trials, and \d.* Make room"
    with pytest.raises(ConfigError, match=text):
        run_search(small_search(), trials=9, root=one_megabyte, tracking_uri=uri_of(tmp_path))


def test_the_space_a_sweep_needs_is_what_it_takes(undisturbed: Path, tmp_path: Path) -> None:
    """The checkpoints' part, which is what fills disks: tensors, plus what a file adds to them."""
    trial = small_sweep().trials[1]
    weights = sum(p.numel() for p in load_trained(folder_of(undisturbed, trial.key)).model.parameters())
    files = (folder_of(undisturbed, trial.key) / "checkpoints").rglob("state.pt")
    taken = sum(path.stat().st_size for path in files)
    tensors = weights * CHECKPOINTS
    assert 0.4 * tensors < taken < 2 * tensors  # the best may be in one checkpoint of the two, small files have headers
    assert space_needed(SweepFolder(undisturbed, small_sweep())) == 0
    assert space_needed(SweepFolder(tmp_path, small_sweep())) > 4 * tensors


# --- machines and tracking


def test_a_trial_that_no_machine_can_hold_is_refused(
    tmp_path: Path, ray_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    text = r"asks for 64 CPUs and 0 GPUs, and no machine here has them \(2 CPUs, 0 GPUs\). Ask for less"
    refused(small_sweep(), tmp_path, ConfigError, text, cpus_per_trial=64)
    assert not (tmp_path / "small-demo" / "trials").exists()


def test_cpus_and_gpus_must_be_of_one_machine() -> None:
    machines = [{"CPU": 64.0}, {"CPU": 4.0, "GPU": 8.0}]
    check_machines(64, 0, machines)
    check_machines(4, 0.5, machines)
    with pytest.raises(ConfigError, match="no machine here has them"):
        check_machines(8, 1, machines)


def test_no_such_tracking_server_is_said_before_any_trial(tmp_path: Path) -> None:
    text = "No tracking store answers at http://127.0.0.1:9: .*Start that server, or unset MLFLOW_TRACKING_URI"
    refused(small_sweep(), tmp_path, TrackingError, text, tracking_uri="http://127.0.0.1:9")
    assert not (tmp_path / "small-demo" / "trials").exists()


@pytest.mark.parametrize("changes", [{}, {"test_sequences": 9}])
def test_a_sweep_begun_anew_elsewhere_does_not_write_into_the_runs_of_the_one_before(
    changes: dict[str, Any], undisturbed: Path, tmp_path: Path
) -> None:
    """As when a folder was deleted, or two people use one server: the same names, with other settings or without."""
    shutil.copytree(undisturbed, tmp_path / "copy")
    uri = uri_of(tmp_path / "copy")
    before = statuses(uri)
    text = (
        rf"has a run of small/demo\S* that belongs to another sweep or search of that name \({undisturbed}.*put its "
        r"folder back, or name it \(--folder\).*another name, or another database \(MLFLOW_TRACKING_URI\). To start "
        r"over, delete those runs in the UI first \(`nowcastlab ui --sweep small`\)"
    )
    refused(small_sweep(**changes), tmp_path, TrackingError, text, tracking_uri=uri)
    assert statuses(uri) == before
    assert not (tmp_path / "small-demo" / "trials").exists()


def test_a_sweep_whose_folder_was_moved_goes_on_with_its_runs(undisturbed: Path, tmp_path: Path) -> None:
    shutil.copytree(undisturbed, tmp_path / "copy")
    uri = uri_of(tmp_path / "copy")
    before = statuses(uri)
    (tmp_path / "copy" / "small-demo").rename(tmp_path / "small-demo")
    assert not run_sweep(small_sweep(), root=tmp_path, tracking_uri=uri).unfinished
    assert statuses(uri) == before


def statuses(uri: str) -> dict[str, str]:
    client = MlflowClient(uri)
    runs = client.search_runs([client.get_experiment_by_name("small").experiment_id])
    return {run.info.run_id: run.info.status for run in runs}
