"""`nowcastlab evaluate` on a run that learnt moving digits: one number, the paper's test MSE."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from nowcastlab.cli.forecasters import Subject
from nowcastlab.progress import progress


def evaluate_run(subject: Subject, folder: Path, *, limit: int, device: Any, as_json: bool) -> None:
    import numpy as np

    from nowcastlab.config import DigitsData
    from nowcastlab.protocol import digits_test, evaluate_digits

    config = subject.config
    assert config is not None
    assert isinstance(config.data, DigitsData)
    test = digits_test(config.data, count=limit)
    errors = evaluate_digits(
        subject.model,
        test,
        frames_in=config.data.in_frames,
        leads=config.data.leads,
        device=device,
        watch=lambda batches: progress(batches, label="evaluate", unit="batch"),
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "scores-digits.npz"
    np.savez_compressed(path, mse=errors)
    result = {**subject.facts, "sequences": len(errors), "mse": float(errors.mean()), "file": str(path)}
    if as_json:
        click.echo(json.dumps({**result, "mse_per_lead": errors.mean(0).tolist()}))
        return
    click.echo(
        f"{subject.name} on {len(errors):,} test sequences of moving digits: MSE x 100 = {100 * errors.mean():.4f} "
        f"(first frame {100 * errors[:, 0].mean():.4f}, last {100 * errors[:, -1].mean():.4f})\nWritten:\n  {path}"
    )
