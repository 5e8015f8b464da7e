"""The paper's tables as data: typed once, and held to sums that were taken from the paper's own LaTeX.

A sum along each column and along each row: a wrong digit breaks one of either, two numbers exchanged break the same.
Skills are in units of their last digit, 0.0001.
"""

from __future__ import annotations

import pytest

from nowcastlab.report.paper import KENDALL, MNIST, OFFLINE, OFFLINE_STD, ONLINE, ONLINE_STD, RAIN_PERCENT, RadarRow

# Down the columns of tables 3 and 4: CSI and HSS at 0.5, 2, 5, 10 and 30 mm/h, B-MSE, B-MAE.
COLUMNS = {
    "scores, offline": (
        OFFLINE,
        [40136, 34387, 26596, 18462, 9332, 50029, 45398, 37737, 28207, 15499, 73258, 159337],
    ),
    "scores, online": (ONLINE, [21292, 18242, 14259, 10619, 6332, 26192, 23761, 19992, 16011, 10474, 24657, 63211]),
    "deviations, offline": (OFFLINE_STD, [117, 92, 87, 64, 102, 115, 98, 104, 83, 167, 204, 234]),
    "deviations, online": (ONLINE_STD, [20, 24, 23, 26, 46, 19, 25, 26, 32, 54, 75, 128]),
}
# Along their rows: the ten skills; B-MSE and B-MAE.
ROWS = {
    "scores, offline": {
        "Last-Frame": (28980, 43316),
        "ROVER-Linear": (36305, 35088),
        "ROVER-Nonlinear": (35886, 33802),
        "2D-CNN": (38983, 25423),
        "3D-CNN": (39333, 24795),
        "ConvGRU-nobal": (38790, 28729),
        "ConvGRU": (43525, 20951),
        "TrajGRU": (43981, 20491),
    },
    "scores, online": {
        "2D-CNN": (39354, 23725),
        "3D-CNN": (39331, 23593),
        "ConvGRU": (43877, 20496),
        "TrajGRU": (44612, 20054),
    },
    "deviations, offline": {"2D-CNN": (217, 185), "3D-CNN": (294, 70), "ConvGRU": (232, 133), "TrajGRU": (286, 50)},
    "deviations, online": {"2D-CNN": (54, 24), "3D-CNN": (36, 50), "ConvGRU": (169, 99), "TrajGRU": (36, 30)},
}


def digits(row: RadarRow) -> list[int]:
    """A row in units of its last digits."""
    return [*(round(1e4 * skill) for skill in (*row.csi, *row.hss)), round(row.bmse), round(row.bmae)]


@pytest.mark.parametrize("name", COLUMNS)
def test_the_benchmark_has_the_sums_of_the_papers_tables(name: str) -> None:
    table, columns = COLUMNS[name]
    typed = {arm: digits(row) for arm, row in table.items()}
    assert [sum(column) for column in zip(*typed.values(), strict=True)] == columns
    assert {arm: (sum(row[:10]), sum(row[10:])) for arm, row in typed.items()} == ROWS[name]


def test_moving_digits_have_the_sums_of_the_papers_table() -> None:
    """Table 1, along its rows: millions of parameters as printed, test MSE and deviation times 100."""
    assert sum(float(row.parameters_printed.removesuffix("M")) for row in MNIST.values()) == pytest.approx(96.82)
    assert 100 * sum(row.mse for row in MNIST.values()) == pytest.approx(13.744)
    assert 100 * sum(row.std for row in MNIST.values()) == pytest.approx(0.094)


def test_kendalls_taus_have_the_sums_of_the_papers_table() -> None:
    """Table 5 in hundredths: down its columns, then along its rows."""
    typed = {error: [round(100 * tau) for tau in taus] for error, taus in KENDALL.items()}
    columns = [-209, -212, -213, -200, -204, -212, -214, -214, -199, -201]
    assert [sum(column) for column in zip(*typed.values(), strict=True)] == columns
    assert {error: sum(taus) for error, taus in typed.items()} == {
        "MSE": -229,
        "MAE": -420,
        "B-MSE": -706,
        "B-MAE": -723,
    }


def test_rain_is_all_of_the_pixels() -> None:
    assert sum(RAIN_PERCENT) == pytest.approx(100)


def test_what_the_paper_says_of_its_numbers_is_true_of_them() -> None:
    assert min(MNIST, key=lambda arm: MNIST[arm].mse) == "Traj-L17"
    for table in (OFFLINE, ONLINE):
        assert min(table, key=lambda arm: table[arm].bmse) == "TrajGRU"
        assert max(table, key=lambda arm: table[arm].csi[4]) == "TrajGRU"
    # "the differences in B-MSE and B-MAE are larger than three times their standard deviation"
    for scores, stds in ((OFFLINE, OFFLINE_STD), (ONLINE, ONLINE_STD)):
        assert scores["ConvGRU"].bmse - scores["TrajGRU"].bmse > 3 * stds["TrajGRU"].bmse
