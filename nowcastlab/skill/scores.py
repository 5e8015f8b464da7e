"""From counts to skill: CSI, HSS, POD, FAR, GSS, bias, and their means over the leads.

A score is computed per lead, from counts summed over all sequences, and then averaged over the leads. Pooling the leads
first gives other numbers, and not those of the benchmark's table (Shi et al. 2017).

**No data.** Where the truth never reaches a threshold there is nothing to be skilled at. CSI would be 0 for a forecast
with one false alarm and undefined for one without, so availability would depend on the model. Here a lead and threshold
without one observed event has no data, in every score and for every model alike. FAR also needs a forecast event. What
has no data is *masked* in a `numpy.ma` array (NaN underneath, so that a lost mask cannot pass for a number), `None` in
lists and JSON, "no data" in text. A mean over leads takes the leads that have data (the same ones for every model), and
`leads_with_data` says how many; with none, the mean has no data either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.ma import MaskedArray
from numpy.typing import ArrayLike, NDArray

from nowcastlab.errors import ConfigError
from nowcastlab.skill.sequence_scores import COUNTS, ERRORS, SequenceScores


def csi(tp: ArrayLike, fn: ArrayLike, fp: ArrayLike, tn: ArrayLike) -> MaskedArray[Any, Any]:
    """Critical success index: TP / (TP + FN + FP)."""
    tp, fn, fp, tn = _counts(tp, fn, fp, tn)
    return _ratio(tp, tp + fn + fp, events=tp + fn)


def hss(tp: ArrayLike, fn: ArrayLike, fp: ArrayLike, tn: ArrayLike) -> MaskedArray[Any, Any]:
    """Heidke skill score, 2 (TP TN - FN FP) / ((TP + FN)(FN + TN) + (TP + FP)(FP + TN)).

    The paper's formula omits the factor 2; its table has it.
    """
    tp, fn, fp, tn = _counts(tp, fn, fp, tn)
    return _ratio(2 * (tp * tn - fn * fp), (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn), events=tp + fn)


def pod(tp: ArrayLike, fn: ArrayLike, fp: ArrayLike, tn: ArrayLike) -> MaskedArray[Any, Any]:
    """Probability of detection: TP / (TP + FN)."""
    tp, fn, fp, tn = _counts(tp, fn, fp, tn)
    return _ratio(tp, tp + fn, events=tp + fn)


def far(tp: ArrayLike, fn: ArrayLike, fp: ArrayLike, tn: ArrayLike) -> MaskedArray[Any, Any]:
    """False alarm ratio: FP / (TP + FP). Without one forecast event there is no data."""
    tp, fn, fp, tn = _counts(tp, fn, fp, tn)
    return _ratio(fp, tp + fp, events=tp + fn)


def gss(tp: ArrayLike, fn: ArrayLike, fp: ArrayLike, tn: ArrayLike) -> MaskedArray[Any, Any]:
    """Gilbert skill score (equitable threat score): CSI without the hits chance would give."""
    tp, fn, fp, tn = _counts(tp, fn, fp, tn)
    pixels = tp + fn + fp + tn
    chance = np.divide((tp + fn) * (tp + fp), pixels, out=np.zeros_like(tp), where=pixels > 0)
    return _ratio(tp - chance, tp + fn + fp - chance, events=tp + fn)


def bias(tp: ArrayLike, fn: ArrayLike, fp: ArrayLike, tn: ArrayLike) -> MaskedArray[Any, Any]:
    """Frequency bias: (TP + FP) / (TP + FN); above 1 the forecast rains too often."""
    tp, fn, fp, tn = _counts(tp, fn, fp, tn)
    return _ratio(tp + fp, tp + fn, events=tp + fn)


SKILL: dict[str, Callable[..., MaskedArray[Any, Any]]] = {
    "csi": csi,
    "hss": hss,
    "pod": pod,
    "far": far,
    "gss": gss,
    "bias": bias,
}


def per_lead(scores: SequenceScores, name: str) -> MaskedArray[Any, Any]:
    """A score by lead: (lead, threshold) for skill, (lead) for an error."""
    if name in ERRORS:
        errors = getattr(scores, name)
        # A missing target added 0 and stays in the denominator: the benchmark's rule.
        return _ratio(errors.sum(0), np.full(errors.shape[1], float(len(errors))), events=np.full(1, len(errors)))
    if name not in SKILL:
        raise ConfigError(f"No score '{name}'. The scores are: {', '.join((*SKILL, *ERRORS))}.")
    return SKILL[name](*(getattr(scores, count).sum(0, dtype=np.int64) for count in COUNTS))


def fss_per_lead(scores: SequenceScores) -> MaskedArray[Any, Any] | None:
    """Fractions skill score (lead, threshold, scale), or None where it was not asked for."""
    if scores.fss_error is None or scores.fss_reference is None:
        return None
    error = scores.fss_error.sum(0).astype(np.float64)
    reference = scores.fss_reference.sum(0).astype(np.float64)
    return _ratio(reference - error, reference, events=(scores.tp + scores.fn).sum(0)[:, :, None])


def mean_spectra(scores: SequenceScores) -> tuple[MaskedArray[Any, Any], MaskedArray[Any, Any]] | None:
    """Power of prediction and of truth (lead, band), over the targets that were there; None where not asked for."""
    if scores.spectrum_predicted is None or scores.spectrum_true is None:
        return None
    frames = (~scores.missing).sum(0)[:, None]
    power = (scores.spectrum_predicted, scores.spectrum_true)
    predicted, true = (_ratio(p.sum(0, dtype=np.float64), frames, events=frames) for p in power)
    return predicted, true


def lead_mean(by_lead: MaskedArray[Any, Any], axis: int = 0) -> MaskedArray[Any, Any]:
    """The mean over the leads that have data; masked where none has."""
    there = ~np.ma.getmaskarray(by_lead)
    leads = there.sum(axis)
    return _ratio(np.where(there, by_lead.data, 0.0).sum(axis), leads, events=leads)


def leads_with_data(by_lead: MaskedArray[Any, Any], axis: int = 0) -> NDArray[np.int64]:
    return (~np.ma.getmaskarray(by_lead)).sum(axis)


def _counts(*counts: ArrayLike) -> list[NDArray[np.float64]]:
    # float64, because the products in HSS overflow 64-bit integers on long archives
    return [np.asarray(count, np.float64) for count in counts]


def _ratio(over: ArrayLike, under: ArrayLike, *, events: ArrayLike) -> MaskedArray[Any, Any]:
    """over / under, masked where there is no event or nothing to divide by."""
    over, under = np.asarray(over, np.float64), np.asarray(under, np.float64)
    there = np.broadcast_to((under != 0) & (np.asarray(events) > 0), np.broadcast_shapes(over.shape, under.shape))
    values = np.divide(over, under, out=np.full(there.shape, np.nan), where=there)
    return np.ma.MaskedArray(values, mask=~there, fill_value=np.nan)
