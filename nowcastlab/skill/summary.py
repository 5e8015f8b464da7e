"""The scores of one run as a table to read and as a dictionary for scripts."""

from __future__ import annotations

from typing import Any

from numpy.ma import MaskedArray

from nowcastlab.skill.scores import SKILL, fss_per_lead, lead_mean, leads_with_data, mean_spectra, per_lead
from nowcastlab.skill.sequence_scores import ERRORS, SequenceScores

NO_DATA = "no data"
_TITLES = {"csi": "CSI", "hss": "HSS", "pod": "POD", "far": "FAR", "gss": "GSS", "bias": "bias"}
# the order of the benchmark's table first
_ERROR_TITLES = {"bmse": "B-MSE", "bmae": "B-MAE", "mse": "MSE", "mae": "MAE", "gdl": "GDL"}
assert _TITLES.keys() == SKILL.keys()
assert _ERROR_TITLES.keys() == set(ERRORS)


def summarize(scores: SequenceScores, *, by_lead: bool = False) -> dict[str, Any]:
    """Plain numbers, lists over thresholds; None is "no data". `leads_with_data` says over how many leads a mean goes.

    `by_lead` adds `per_lead`: the same scores, with the leads as the outer list.
    """
    out: dict[str, Any] = {
        "sequences": len(scores),
        "episodes": scores.episodes,
        "missing_targets": int(scores.missing.sum()),
        "thresholds_mmh": scores.thresholds_mmh.tolist(),
        "lead_minutes": scores.lead_minutes.tolist(),
    }
    tables = {name: per_lead(scores, name) for name in (*_TITLES, *_ERROR_TITLES)}
    fractions = fss_per_lead(scores)
    if fractions is not None and scores.fss_scale_km is not None and scores.fss_pixels is not None:
        tables["fss"] = fractions
        out["fss_scale_km"], out["fss_pixels"] = scores.fss_scale_km.tolist(), scores.fss_pixels.tolist()
    out |= {name: lead_mean(table).tolist() for name, table in tables.items()}
    out["leads_with_data"] = {name: leads_with_data(tables[name]).tolist() for name in _TITLES}
    spectra = mean_spectra(scores)
    if by_lead:
        out["per_lead"] = {name: table.tolist() for name, table in tables.items()}
        if spectra is not None and scores.spectrum_wavelength_km is not None:
            out["spectrum_wavelength_km"] = scores.spectrum_wavelength_km.tolist()
            out["per_lead"] |= {
                f"spectrum_{k}": v.tolist() for k, v in zip(("predicted", "true"), spectra, strict=True)
            }
    return out


def as_text(scores: SequenceScores, *, by_lead: bool = False) -> str:
    """The table a person reads: skill by threshold, errors below, and what the means leave out."""
    leads, missing = scores.lead_minutes, int(scores.missing.sum())
    head = (
        f"{_some(len(scores), 'sequence')} in {_some(scores.episodes, 'episode')}, {_some(len(leads), 'lead')} "
        f"from {leads[0]:g} to {leads[-1]:g} minutes" + (f"; {_some(missing, 'target')} missing" if missing else "")
    )
    tables = {name: per_lead(scores, name) for name in SKILL}
    errors = {name: per_lead(scores, name) for name in _ERROR_TITLES}
    columns = [f">= {rate:g}" for rate in scores.thresholds_mmh]
    skill_rows = [[_TITLES[name], *_cells(lead_mean(table))] for name, table in tables.items()]
    fractions = fss_per_lead(scores)
    if fractions is not None and scores.fss_scale_km is not None:
        for s, scale in enumerate(scores.fss_scale_km):
            skill_rows.append([f"FSS {scale:g} km", *_cells(lead_mean(fractions[:, :, s]))])
    blocks = [
        head,
        "Mean over leads, by rain rate in mm/h\n" + _grid(["", *columns], skill_rows),
        "Mean over leads and sequences of a frame's sum, in p units\n"
        + _grid(list(_ERROR_TITLES.values()), [[_cell(lead_mean(e).tolist(), 1) for e in errors.values()]]),
    ]
    notes = _notes(scores, tables)
    if notes:
        blocks.append("\n".join(notes))
    if by_lead:
        minutes = [f"{lead:g}" for lead in leads]
        for name, table in tables.items():
            rows = [[m, *_cells(row)] for m, row in zip(minutes, table, strict=True)]
            blocks.append(f"{_TITLES[name]} by lead\n" + _grid(["minutes", *columns], rows))
        rows = [[m, *(_cell(e[i : i + 1].tolist()[0], 1) for e in errors.values())] for i, m in enumerate(minutes)]
        blocks.append("Errors by lead\n" + _grid(["minutes", *_ERROR_TITLES.values()], rows))
    return "\n\n".join(blocks)


def _notes(scores: SequenceScores, tables: dict[str, MaskedArray[Any, Any]]) -> list[str]:
    notes = []
    for j, rate in enumerate(scores.thresholds_mmh):
        if not leads_with_data(tables["pod"])[j]:  # POD has data wherever the rate was observed
            notes.append(f"{rate:g} mm/h was never observed: no data.")
            continue
        for name, table in tables.items():
            n = int(leads_with_data(table)[j])
            if n < len(scores.lead_minutes):
                notes.append(f"{_TITLES[name]} at {rate:g} mm/h: {n} of {len(scores.lead_minutes)} leads have data.")
    return notes


def _some(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _cells(row: MaskedArray[Any, Any]) -> list[str]:
    return [_cell(value, 4) for value in row.tolist()]


def _cell(value: float | None, decimals: int) -> str:
    return NO_DATA if value is None else f"{value:.{decimals}f}"


def _grid(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = ("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows])
    return "\n".join(f"  {line}" for line in lines)
