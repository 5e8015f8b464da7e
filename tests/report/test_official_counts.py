"""With the counts of a real benchmark run put in, the printed cells are the paper's, to the digit.

The official counts are nobody's to ship. So counts are derived here from which the paper's scores come (the arithmetic
is in `printed_scores`), written in the documented file format, and read back by the command.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from nowcastlab.cli.report import command
from nowcastlab.errors import ConfigError, ReportError
from nowcastlab.report import ScoreFile, from_files
from nowcastlab.report.paper import OFFLINE, OFFLINE_STD, ONLINE, ONLINE_STD, SEEDLESS, RadarRow
from nowcastlab.report.table import Table, shown
from nowcastlab.report.tables import hko7_std_table, hko7_table
from nowcastlab.skill import save_scores


@pytest.fixture(scope="module")
def files(made: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("official")
    arguments = []
    for setting, rows in (("offline", OFFLINE), ("online", ONLINE)):
        for arm in rows:
            runs = made.paper_runs(arm, setting)
            for seed, scores in enumerate(runs, 1):
                path = folder / f"{arm}-{seed}-{setting}.npz"
                save_scores(path, scores)
                seeded = "" if arm in SEEDLESS else f":{seed}"
                arguments.append(f"{arm}{seeded}{':online' if setting == 'online' else ''}={path}")
    return arguments


def printed(table: Table) -> dict[tuple[str, str], list[str]]:
    """{(setting, arm): the row as it is printed}."""
    return {
        (section.title.split()[0].lower(), row.title): [
            shown(table, cell, column) for cell, column in zip(row.cells, table.columns, strict=True)
        ]
        for section in table.sections
        for row in section.rows
    }


def digits(row: RadarRow) -> list[str]:
    """As the paper prints it."""
    return [*(f"{x:.4f}" for x in (*row.csi, *row.hss)), f"{row.bmse:.0f}", f"{row.bmae:.0f}"]


def test_every_cell_of_the_papers_benchmark_table_comes_out_to_the_digit(files: list[str]) -> None:
    collection, _ = from_files([ScoreFile.parse(text) for text in files])
    expected = {("offline", arm): digits(row) for arm, row in OFFLINE.items()}
    expected |= {("online", arm): digits(row) for arm, row in ONLINE.items()}
    assert printed(hko7_table(collection)) == expected


def test_every_cell_of_the_papers_deviations_comes_out_to_the_digit(files: list[str]) -> None:
    collection, _ = from_files([ScoreFile.parse(text) for text in files])
    found = printed(hko7_std_table(collection))
    assert {key: row for key, row in found.items() if key[1] != "ConvGRU-nobal"} == {
        **{("offline", arm): digits(row) for arm, row in OFFLINE_STD.items()},
        **{("online", arm): digits(row) for arm, row in ONLINE_STD.items()},
    }


def test_the_command_prints_them_from_files_and_says_they_are_files(files: list[str]) -> None:
    arguments = [part for text in files for part in ("--scores", text)]
    result = CliRunner().invoke(command, ["--table", "hko7", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    (line,) = [line for line in result.output.splitlines() if line.startswith("Last-Frame")]
    # as the paper has them, whatever `OFFLINE` says
    skills = "0.4022 0.3266 0.2401 0.1574 0.0692 0.5207 0.4531 0.3582 0.2512 0.1193"
    assert " ".join(line.split()) == f"Last-Frame {skills} 15274 28042"
    assert "! From files of scores: neither scale nor store is recorded with them." in result.output


def test_files_get_no_verdict_on_the_paper(files: list[str]) -> None:
    arguments = [part for text in files[:1] for part in ("--scores", text)]
    result = CliRunner().invoke(command, ["--against", "paper", *arguments], catch_exceptions=False)
    assert "No verdict: files of scores do not say at which scale" in result.output


@pytest.mark.parametrize("text", ["last.npz", "A:one=last.npz", "=last.npz", "A:1:2=x.npz", "A:²=x.npz", "A:1:fixed=x"])
def test_a_file_without_an_arm_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"as in TrajGRU:1:online=scores.npz"):
        ScoreFile.parse(text)


def test_files_of_other_test_days_are_refused(made: SimpleNamespace, files: list[str], tmp_path: Path) -> None:
    save_scores(tmp_path / "other.npz", made.radar_scores(0.5, seed=1))
    given = [ScoreFile.parse(text) for text in (files[0], f"Mine:fixed={tmp_path / 'other.npz'}")]
    with pytest.raises(ReportError, match="of 2 data sets, and one table must not mix them"):
        from_files(given)


def test_a_seed_given_twice_is_refused(files: list[str]) -> None:
    with pytest.raises(ReportError, match="Last-Frame has its offline scores twice"):
        from_files([ScoreFile.parse(files[0]), ScoreFile.parse(files[0])])


def test_a_forgotten_seed_does_not_make_a_network_a_method_without_seeds() -> None:
    with pytest.raises(ConfigError, match=r"of which seed\? Give it as TrajGRU:1=t.npz; or, .* as TrajGRU:fixed=t.npz"):
        ScoreFile.parse("TrajGRU=t.npz")
    assert ScoreFile.parse("TrajGRU:fixed:online=t.npz").seed is None
    assert ScoreFile.parse("ROVER-Linear=r.npz").seed is None


def test_one_file_is_not_three_seeds(made: SimpleNamespace, tmp_path: Path) -> None:
    """Nor is a copy of it."""
    for name in ("one.npz", "copy.npz"):
        save_scores(tmp_path / name, made.radar_scores(0.5, seed=1))
    given = [ScoreFile.parse(f"TrajGRU:{seed}={tmp_path / name}") for seed, name in ((1, "one.npz"), (2, "copy.npz"))]
    text = r"TrajGRU has the same offline scores for seed 1 and seed 2: .*one\.npz and .*copy\.npz"
    with pytest.raises(ReportError, match=text):
        from_files(given)


def test_an_arm_either_has_seeds_or_has_none(files: list[str]) -> None:
    with pytest.raises(ReportError, match="Last-Frame: some files have a seed and some have none"):
        from_files([ScoreFile.parse(files[0]), ScoreFile.parse(f"Last-Frame:2={files[0].partition('=')[2]}")])


def test_files_of_other_integers_are_of_the_same_test_set(made: SimpleNamespace, tmp_path: Path) -> None:
    """start and episode in int32, as others may write them: the days are the same."""
    save_scores(tmp_path / "a.npz", made.radar_scores(0.5, seed=1))
    arrays = made.radar_scores(0.6, seed=2).arrays()
    np.savez(tmp_path / "b.npz", **{**arrays, **{name: arrays[name].astype(np.int32) for name in ("start", "episode")}})
    collection, _ = from_files([ScoreFile.parse(f"{arm}:1={tmp_path / arm.lower()}.npz") for arm in ("A", "B")])
    assert list(collection.arms) == ["A", "B"]


def test_claims_are_judged_by_the_files_and_not_by_what_mlflow_has(files: list[str]) -> None:
    arguments = [word for text in files for word in ("--scores", text)]
    result = CliRunner().invoke(command, ["--table", "claims", *arguments], catch_exceptions=False)
    assert "files of scores: From files of scores: neither scale nor store is recorded with them." in result.output
    assert "has lower B-MSE and B-MAE than each variant of ROVER" in result.output
    assert "Not testable: files of scores are of radar." in result.output
