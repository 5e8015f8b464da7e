"""Networks and baselines where numba cannot be imported: the plain way, and the same forecast."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch

from nowcastlab.models import build

PROGRAM = """
import sys
sys.modules["numba"] = None  # any import of it fails from here on
import torch
from nowcastlab.models import build
frames = torch.load(sys.argv[1], weights_only=True)
models = {"traj-l5": build("traj-l5"), "rover": build("rover", "hko7"), "conv-k3-d2": build("conv-k3-d2")}
torch.save({name: model.predict(frames, leads=2) for name, model in models.items()}, sys.argv[2])
"""


def test_every_kind_of_model_forecasts_as_with_it(tmp_path: Path) -> None:
    frames = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    torch.save(frames, tmp_path / "frames.pt")
    subprocess.run([sys.executable, "-c", PROGRAM, tmp_path / "frames.pt", tmp_path / "seen.pt"], check=True)
    for name, forecast in torch.load(tmp_path / "seen.pt", weights_only=True).items():
        expected = build(name, "hko7" if name == "rover" else "mnist").predict(frames, leads=2)
        torch.testing.assert_close(forecast, expected, rtol=1e-4, atol=1e-4)
