"""`nowcastlab evaluate` on a run that learnt moving digits: one number, the paper's test MSE."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from nowcastlab.cli.evaluation import read_facts
from nowcastlab.cli.forecasters import Subject
from nowcastlab.errors import StoreError
from nowcastlab.progress import progress
from nowcastlab.whole_files import whole_file, write_atomically


def evaluate_run(subject: Subject, folder: Path, *, limit: int, device: Any, again: bool, as_json: bool) -> None:
    """Score the run, or show the scores of this very evaluation. Another's, as a sweep's, are not replaced unasked."""
    path, facts_path = folder / "scores-digits.npz", folder / "scores-digits.json"
    facts = {**subject.facts, "sequences": limit}
    if path.exists() and not again:
        if read_facts(facts_path) != facts:
            raise StoreError(
                f"{path} is there and not of this evaluation. Give another folder with --out, or replace it with "
                "--again."
            )
        with np.load(path, allow_pickle=False) as file:
            errors = file["mse"]
        click.echo("Scored before: these are the scores in the folder. --again scores anew.", err=True)
    else:
        errors = _errors(subject, limit, device)
        folder.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # first: old scores beside new facts would pass for new ones
        write_atomically(facts_path, json.dumps(facts, indent=1).encode())
        with whole_file(path) as file:
            np.savez_compressed(file, mse=errors)
    result = {**facts, "mse": float(errors.mean()), "file": str(path)}
    if as_json:
        click.echo(json.dumps({**result, "mse_per_lead": errors.mean(0).tolist()}))
        return
    click.echo(
        f"{subject.name} on {len(errors):,} test sequences of moving digits: MSE x 100 = {100 * errors.mean():.4f} "
        f"(first frame {100 * errors[:, 0].mean():.4f}, last {100 * errors[:, -1].mean():.4f})\nWritten:\n  {path}"
    )


def _errors(subject: Subject, limit: int, device: Any) -> NDArray[np.float64]:
    from nowcastlab.config import DigitsData
    from nowcastlab.protocol import digits_test, evaluate_digits

    config = subject.config
    assert config is not None
    assert isinstance(config.data, DigitsData)
    return evaluate_digits(
        subject.model,
        digits_test(config.data, count=limit),
        frames_in=config.data.in_frames,
        leads=config.data.leads,
        device=device,
        watch=lambda batches: progress(batches, label="evaluate", unit="batch"),
    )
