"""The tables of Shi et al. 2017 as data, with what is known to be wrong in them."""

from __future__ import annotations

from dataclasses import dataclass

from nowcastlab.metric_names import DIGITS_MSE, parse_metric
from nowcastlab.significance import Published
from nowcastlab.units import THRESHOLDS_MMH


@dataclass(frozen=True, kw_only=True)
class DigitsRow:
    """Table 1: MovingMNIST++."""

    parameters_printed: str
    parameters: int  # counted; see `nowcastlab models` for why they differ
    mse: float
    std: float


MNIST: dict[str, DigitsRow] = {
    "Conv-K3-D2": DigitsRow(parameters_printed="2.84M", parameters=2_604_817, mse=1.495e-2, std=0.003e-2),
    "Conv-K5-D1": DigitsRow(parameters_printed="4.77M", parameters=4_767_505, mse=1.310e-2, std=0.004e-2),
    "Conv-K7-D1": DigitsRow(parameters_printed="8.01M", parameters=8_011_537, mse=1.254e-2, std=0.006e-2),
    "Traj-L5": DigitsRow(parameters_printed="2.60M", parameters=2_842_157, mse=1.351e-2, std=0.020e-2),
    "Traj-L9": DigitsRow(parameters_printed="3.42M", parameters=3_421_277, mse=1.247e-2, std=0.015e-2),
    "Traj-L13": DigitsRow(parameters_printed="4.00M", parameters=4_000_397, mse=1.170e-2, std=0.022e-2),
    "Traj-L17": DigitsRow(parameters_printed="4.77M", parameters=4_579_517, mse=1.138e-2, std=0.019e-2),
    "DFN": DigitsRow(parameters_printed="4.83M", parameters=4_825_648, mse=1.461e-2, std=0.002e-2),
    "Conv2D": DigitsRow(parameters_printed="29.06M", parameters=59_061_250, mse=1.681e-2, std=0.001e-2),
    "Conv3D": DigitsRow(parameters_printed="32.52M", parameters=66_081_921, mse=1.637e-2, std=0.002e-2),
}


@dataclass(frozen=True, kw_only=True)
class RadarRow:
    """A row of table 3 (scores), and of table 4 (standard deviations over three seeds) where it has one."""

    csi: tuple[float, ...]
    hss: tuple[float, ...]
    bmse: float
    bmae: float


def _row(*values: float) -> RadarRow:
    return RadarRow(csi=values[:5], hss=values[5:10], bmse=values[10], bmae=values[11])


OFFLINE: dict[str, RadarRow] = {
    "Last-Frame": _row(0.4022, 0.3266, 0.2401, 0.1574, 0.0692, 0.5207, 0.4531, 0.3582, 0.2512, 0.1193, 15274, 28042),
    "ROVER-Linear": _row(0.4762, 0.4089, 0.3151, 0.2146, 0.1067, 0.6038, 0.5473, 0.4516, 0.3301, 0.1762, 11651, 23437),
    "ROVER-Nonlinear": _row(
        0.4655, 0.4074, 0.3226, 0.2164, 0.0951, 0.5896, 0.5436, 0.4590, 0.3318, 0.1576, 10945, 22857
    ),
    "2D-CNN": _row(0.5095, 0.4396, 0.3406, 0.2392, 0.1093, 0.6366, 0.5809, 0.4851, 0.3690, 0.1885, 7332, 18091),
    "3D-CNN": _row(0.5109, 0.4411, 0.3415, 0.2424, 0.1185, 0.6334, 0.5825, 0.4862, 0.3734, 0.2034, 7202, 17593),
    "ConvGRU-nobal": _row(0.5476, 0.4661, 0.3526, 0.2138, 0.0712, 0.6756, 0.6094, 0.4981, 0.3286, 0.1160, 9087, 19642),
    "ConvGRU": _row(0.5489, 0.4731, 0.3720, 0.2789, 0.1776, 0.6701, 0.6104, 0.5163, 0.4159, 0.2893, 5951, 15000),
    "TrajGRU": _row(0.5528, 0.4759, 0.3751, 0.2835, 0.1856, 0.6731, 0.6126, 0.5192, 0.4207, 0.2996, 5816, 14675),
}
ONLINE: dict[str, RadarRow] = {
    "2D-CNN": _row(0.5112, 0.4363, 0.3364, 0.2435, 0.1263, 0.6365, 0.5756, 0.4790, 0.3744, 0.2162, 6654, 17071),
    "3D-CNN": _row(0.5106, 0.4344, 0.3345, 0.2427, 0.1299, 0.6355, 0.5736, 0.4766, 0.3733, 0.2220, 6690, 16903),
    "ConvGRU": _row(0.5511, 0.4737, 0.3742, 0.2843, 0.1837, 0.6712, 0.6105, 0.5183, 0.4226, 0.2981, 5724, 14772),
    "TrajGRU": _row(0.5563, 0.4798, 0.3808, 0.2914, 0.1933, 0.6760, 0.6164, 0.5253, 0.4308, 0.3111, 5589, 14465),
}
OFFLINE_STD: dict[str, RadarRow] = {
    "2D-CNN": _row(0.0032, 0.0023, 0.0015, 0.0001, 0.0025, 0.0032, 0.0025, 0.0018, 0.0003, 0.0043, 90, 95),
    "3D-CNN": _row(0.0043, 0.0027, 0.0016, 0.0024, 0.0024, 0.0042, 0.0028, 0.0018, 0.0031, 0.0041, 44, 26),
    "ConvGRU": _row(0.0022, 0.0018, 0.0031, 0.0008, 0.0022, 0.0022, 0.0021, 0.0040, 0.0010, 0.0038, 52, 81),
    "TrajGRU": _row(0.0020, 0.0024, 0.0025, 0.0031, 0.0031, 0.0019, 0.0024, 0.0028, 0.0039, 0.0045, 18, 32),
}
ONLINE_STD: dict[str, RadarRow] = {
    "2D-CNN": _row(0.0002, 0.0005, 0.0002, 0.0002, 0.0012, 0.0002, 0.0005, 0.0002, 0.0003, 0.0019, 12, 12),
    "3D-CNN": _row(0.0004, 0.0003, 0.0002, 0.0003, 0.0008, 0.0004, 0.0004, 0.0003, 0.0004, 0.0001, 23, 27),
    "ConvGRU": _row(0.0006, 0.0012, 0.0017, 0.0019, 0.0024, 0.0006, 0.0012, 0.0019, 0.0023, 0.0031, 30, 69),
    "TrajGRU": _row(0.0008, 0.0004, 0.0002, 0.0002, 0.0002, 0.0007, 0.0004, 0.0002, 0.0002, 0.0003, 10, 20),
}

SEEDS = 3  # of the rows that have deviations; one run of the others


def published(arm: str, metric: str) -> Published | None:
    """The printed number behind a metric's name in MLflow, as `offline/csi/r30` or `test/mse`; None: not printed."""
    if metric == DIGITS_MSE:
        row = MNIST.get(arm)
        return Published(value=row.mse, std=row.std, seeds=SEEDS, digit=1e-5) if row else None
    setting, score, threshold_mmh = parse_metric(metric)
    means, stds = {"offline": (OFFLINE, OFFLINE_STD), "online": (ONLINE, ONLINE_STD)}.get(setting, ({}, {}))
    if arm not in means:
        return None
    value, digit = _number(means[arm], score, threshold_mmh)
    if arm in stds:
        return Published(value=value, std=_number(stds[arm], score, threshold_mmh)[0], seeds=SEEDS, digit=digit)
    return Published(value=value, std=0.0 if arm in SEEDLESS else None, seeds=1, digit=digit)


SEEDLESS = ("Last-Frame", "ROVER-Linear", "ROVER-Nonlinear")


def _number(row: RadarRow, score: str, threshold_mmh: float | None) -> tuple[float, float]:
    """The number, and one unit of its last printed digit."""
    if threshold_mmh is None:
        return float(getattr(row, score)), 1.0
    return float(getattr(row, score)[THRESHOLDS_MMH.index(threshold_mmh)]), 1e-4


# Table 5: Kendall's tau of an error with CSI, then with HSS, at the five thresholds.
KENDALL: dict[str, tuple[float, ...]] = {
    "MSE": (-0.24, -0.39, -0.39, -0.07, -0.01, -0.33, -0.42, -0.39, -0.06, 0.01),
    "MAE": (-0.41, -0.57, -0.55, -0.25, -0.27, -0.50, -0.60, -0.55, -0.24, -0.26),
    "B-MSE": (-0.70, -0.57, -0.61, -0.86, -0.84, -0.62, -0.55, -0.61, -0.86, -0.84),
    "B-MAE": (-0.74, -0.59, -0.58, -0.82, -0.92, -0.67, -0.57, -0.59, -0.83, -0.92),
}

# Table 2: share of pixels in each class of rain rate, per cent.
RAIN_PERCENT = (90.25, 4.38, 2.46, 1.35, 1.14, 0.42)

# By the table of `nowcastlab report` that shows the paper's numbers.
ERRATA = {
    "mnist": (
        "The paper's table 1 has the parameter counts of Conv-K3-D2 and Traj-L5 exchanged; Traj-L17's, Conv2D's and "
        "Conv3D's are not what their configurations give.",
    ),
    "hko7": (
        "The paper's formula for HSS lacks a factor 2, its table does not.",
        "Each score is computed per lead time and then averaged over the 20 leads; pooling them gives other numbers.",
    ),
    "kendall": (
        "The paper's table 5 is not Kendall's tau over the rows of its table 3 (for B-MSE and CSI at 0.5 mm/h they "
        "give -0.79, not -0.70); it may be over single runs, which the paper does not print.",
    ),
}
