"""What `nowcastlab calibrate` has simulated is not lost to a picture. Its numbers: tests/significance."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from nowcastlab.cli import main_group

SMALL = ["--simulations", "20", "--seeds", "3", "--episodes", "", "--truth", "seeds", "--no-power"]


def test_a_folder_that_cannot_be_made_is_said_before_anything_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated: list[str] = []
    monkeypatch.setattr(
        "nowcastlab.significance.calibration.rejection_rates", lambda truth, **_: simulated.append(truth) or []
    )
    (tmp_path / "file").touch()
    result = CliRunner().invoke(main_group, ["calibrate", *SMALL, "--figures", str(tmp_path / "file")])
    assert isinstance(result.exception, FileExistsError)  # which every verb tells in a line
    assert simulated == []


@pytest.mark.parametrize(("form", "text"), [([], "inside 3-7%"), (["--json"], '"no_difference"')])
def test_the_table_is_printed_though_its_picture_cannot_be_written(tmp_path: Path, form: list[str], text: str) -> None:
    (tmp_path / "calibration.png").mkdir()
    result = CliRunner().invoke(main_group, ["calibrate", *SMALL, *form, "--figures", str(tmp_path)])
    assert isinstance(result.exception, IsADirectoryError)
    assert text in result.stdout
