"""Forecasts in, scores out: what a benchmark run calls on every batch.

predicted  (batch, lead, y, x) float32, p
true       (batch, lead, y, x) uint8
present    (batch, lead) bool, False where the target frame is missing: it adds 0 and still counts as a frame
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nowcastlab.errors import ConfigError, TrainingError
from nowcastlab.skill.fused import score_frame, stretches
from nowcastlab.skill.rule import Rule
from nowcastlab.skill.sequence_scores import COUNTS, ERRORS, SequenceScores
from nowcastlab.skill.spatial import FSS_SCALES_KM, Bands, fss_sums, fss_window
from nowcastlab.units import THRESHOLDS_MMH, valid_pixels

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Scorer:
    """What stays the same over a run.

    >>> scorer = Scorer(excluded=store.excluded, lead_minutes=range(6, 126, 6))
    >>> parts.append(scorer.score(forecast, pixels, present=present, start=starts, episode=episodes))
    >>> save_scores("scores.npz", concatenate(parts))

    `threads` spreads frames over threads; the numbers do not depend on it, nor on how sequences are batched.
    `fss` and `spectrum` add the fractions skill score and the radially averaged spectrum. They cost ten times the
    rest or more, and memory with every sequence, so they are asked for. Both need `km_per_pixel`.
    """

    excluded: NDArray[np.bool_]
    lead_minutes: ArrayLike
    thresholds_mmh: tuple[float, ...] = THRESHOLDS_MMH
    km_per_pixel: float | None = None
    fss: bool = False
    spectrum: bool = False
    threads: int = 1

    def __post_init__(self) -> None:
        if self.excluded.ndim != 2 or self.excluded.dtype != np.bool_:
            raise ConfigError(
                f"`excluded` is a map (y, x) of bool, got {self.excluded.shape} of {self.excluded.dtype}."
            )
        if (self.fss or self.spectrum) and not (self.km_per_pixel and self.km_per_pixel > 0):
            raise ConfigError(
                f"Scores by scale need `km_per_pixel` (={self.km_per_pixel}): give it, or leave them out."
            )
        if self.threads < 1:
            raise ConfigError(f"`threads` (={self.threads}) must be at least 1.")
        _ = self._rule  # a threshold that cannot be is refused now, not after the first forecast

    @cached_property
    def _rule(self) -> Rule:
        return Rule.of(tuple(self.thresholds_mmh))

    @cached_property
    def _leads(self) -> NDArray[np.float64]:
        return np.asarray(self.lead_minutes, np.float64)

    @cached_property
    def _included(self) -> NDArray[np.uint8]:
        return (~self.excluded).astype(np.uint8)

    @cached_property
    def _walked(self) -> NDArray[np.int64]:
        return stretches(self.excluded)

    @cached_property
    def _fss_windows(self) -> NDArray[np.int64]:
        assert self.km_per_pixel is not None
        return np.array([fss_window(scale, self.km_per_pixel) for scale in FSS_SCALES_KM], np.int64)

    @cached_property
    def _bands(self) -> Bands:
        assert self.km_per_pixel is not None
        return Bands.of(self.excluded.shape, km_per_pixel=self.km_per_pixel)

    def score(
        self,
        predicted: NDArray[np.float32] | Tensor,
        true: NDArray[np.uint8] | Tensor,
        *,
        present: ArrayLike,
        start: ArrayLike,
        episode: ArrayLike,
    ) -> SequenceScores:
        """Predictions on a GPU are scored there; NaN or infinity where it would count is an error."""
        here = np.asarray(present, np.bool_)
        self._check(predicted, true, here)
        if getattr(getattr(predicted, "device", None), "type", "cpu") in ("cpu", "mps"):  # mps has no float64
            counts, errors = self._fused(_host(predicted), _host(true), here)
        else:
            counts, errors = self._on_device(predicted, true, here)
        if not np.isfinite(errors).all():
            sequence, lead = np.argwhere(~np.isfinite(errors).all(-1))[0]
            raise TrainingError(
                f"The forecast is NaN or infinite at lead {self._leads[lead]:g} min of the window starting at minute "
                f"{np.asarray(start)[sequence]}: the model has diverged. Score an earlier checkpoint."
            )
        arrays: dict[str, NDArray[Any]] = {name: counts[:, :, i] for i, name in enumerate(COUNTS)}
        arrays |= {name: errors[:, :, i] for i, name in enumerate(ERRORS)}
        arrays |= self._by_scale(predicted, true, here)
        return SequenceScores(
            **arrays,
            start=np.asarray(start, np.int64),
            episode=np.asarray(episode, np.int64),
            thresholds_mmh=np.asarray(self.thresholds_mmh, np.float64),
            lead_minutes=self._leads,
        )

    def _fused(
        self, predicted: NDArray[np.float32], true: NDArray[np.uint8], present: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        rule = self._rule
        counts = np.zeros((*present.shape, 4, len(rule.first_p)), np.int64)
        errors = np.zeros((*present.shape, 5))

        def one(index: tuple[int, ...]) -> None:
            score_frame(
                predicted[index],
                true[index],
                self._included,
                self._walked,
                rule.first_p,
                rule.first_level,
                rule.weight_level,
                rule.weight_step,
                counts[index],
                errors[index],
            )

        self._each(one, present)
        return counts, errors

    def _on_device(self, predicted: Any, true: Any, present: NDArray[np.bool_]) -> Any:
        import torch

        from nowcastlab.skill.device import score_on_device

        device = predicted.device
        return score_on_device(
            predicted.detach(),
            torch.as_tensor(true).to(device),
            torch.as_tensor(~self.excluded).to(device),
            torch.as_tensor(present).to(device),
            self._rule,
        )

    def _by_scale(self, predicted: Any, true: Any, present: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
        """The optional scores, always on the host: each frame of them is a few kilobytes of result."""
        if not (self.fss or self.spectrum):
            return {}
        predicted, true = _host(predicted), _host(true)
        out: dict[str, NDArray[Any]] = {}
        if self.fss:
            error = np.zeros((*present.shape, len(self._rule.first_p), len(self._fss_windows)), np.int64)
            reference = np.zeros_like(error)

            def fractions(index: tuple[int, ...]) -> None:
                valid = valid_pixels(true[index], self.excluded)
                cuts = (self._rule.first_p, self._rule.first_level)
                fss_sums(predicted[index], true[index], valid, *cuts, self._fss_windows, error[index], reference[index])

            self._each(fractions, present)
            out |= {"fss_error": error, "fss_reference": reference, "fss_pixels": self._fss_windows}
            out["fss_scale_km"] = np.array(FSS_SCALES_KM)
        if self.spectrum:
            bands = self._bands
            spectra = np.zeros((2, *present.shape, len(bands.wavelength_km)), np.float32)

            def power(index: tuple[int, ...]) -> None:
                valid = valid_pixels(true[index], self.excluded)
                spectra[0][index] = bands.power(np.where(valid, predicted[index], 0))
                spectra[1][index] = bands.power(np.where(valid, true[index] / 255.0, 0))

            self._each(power, present)
            out |= {"spectrum_predicted": spectra[0], "spectrum_true": spectra[1]}
            out["spectrum_wavelength_km"] = bands.wavelength_km
        return out

    def _each(self, work: Any, present: NDArray[np.bool_]) -> None:
        """Run `work` on every frame there is. Each writes only its own part of the result."""
        frames = [tuple(index) for index in np.argwhere(present)]
        if self.threads == 1 or len(frames) < 2:
            for index in frames:
                work(index)
            return
        # Threads of our own and not numba's: its pools may not be entered from two threads, nor used after a fork.
        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(work, frames))

    def _check(self, predicted: Any, true: Any, present: NDArray[np.bool_]) -> None:
        shape = (*present.shape, *self.excluded.shape)
        for name, array, dtype in (("predicted", predicted, "float32"), ("true", true, "uint8")):
            if tuple(array.shape) != shape or str(array.dtype).removeprefix("torch.") != dtype:
                raise ConfigError(
                    f"`{name}` is {tuple(array.shape)} of {array.dtype}; with `present` {present.shape} and a grid of "
                    f"{self.excluded.shape} it must be {shape} of {dtype}."
                )
        if present.ndim != 2 or present.shape[1] != len(self._leads):
            raise ConfigError(
                f"`present` has shape {present.shape}; it is (batch, lead) with {len(self._leads)} leads."
            )


def _host(array: Any) -> NDArray[Any]:
    """A contiguous numpy view of a numpy array or a CPU tensor, or a copy of a device tensor."""
    if hasattr(array, "detach"):
        array = array.detach().cpu().numpy()
    return np.ascontiguousarray(array)
