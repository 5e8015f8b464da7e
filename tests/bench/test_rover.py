from __future__ import annotations

import json

import numpy as np
from click.testing import CliRunner

from nowcastlab.bench.rover import advected_rain, command, dis_forecast


def test_the_bench_prints_every_method_beside_rover() -> None:
    result = CliRunner().invoke(command, ["--size", "64", "--leads", "3", "--rounds", "1"])
    assert result.exit_code == 0, result.output
    for method in ("ROVER", "ROVER non-linear", "ROVER in plain torch", "OpenCV DIS", "pysteps"):
        assert method in result.output


def test_the_bench_speaks_json() -> None:
    result = CliRunner().invoke(command, ["--size", "64", "--leads", "3", "--rounds", "3", "--json"])
    document = json.loads(result.output)
    assert (document["size"], document["leads"], document["threads"]) == (64, 3, 1)
    by_method = {row["method"]: row for row in document["results"]}
    assert by_method["ROVER"]["times_rover"] == 1
    assert all(row["ms"] > 0 and row["cpu_ms"] > 0 for row in document["results"])


def test_the_comparison_moves_the_rain_the_right_way() -> None:
    """A flow applied backwards would take as long and mean nothing."""
    frames = advected_rain(120)
    forecast = np.asarray(dis_forecast(frames, 1)())[0]
    truth = np.roll(frames[1], (-2, 3), axis=(0, 1))
    inside = np.s_[20:-20, 20:-20]
    assert abs(forecast - truth)[inside].mean() < 0.5 * abs(frames[1] - truth)[inside].mean()
