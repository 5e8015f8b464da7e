"""Skill: forecasts and truth in, counts and errors per sequence out, and from those every score of the benchmark.

scorer = Scorer(excluded=store.excluded, lead_minutes=range(6, 126, 6))
parts = [scorer.score(forecast, pixels, present=..., start=..., episode=...) for ...]
save_scores("scores.npz", concatenate(parts))

scores = load_scores("scores.npz")
lead_mean(per_lead(scores, "csi"))        # (threshold), masked where there is no data
summarize(scores)                         # the same and more, as plain lists and None
"""

from nowcastlab.skill.score_file import load_scores, save_scores
from nowcastlab.skill.scorer import Scorer
from nowcastlab.skill.scores import SKILL, fss_per_lead, lead_mean, leads_with_data, mean_spectra, per_lead
from nowcastlab.skill.sequence_scores import COUNTS, ERRORS, SequenceScores, concatenate
from nowcastlab.skill.summary import as_text, summarize

__all__ = [
    "COUNTS",
    "ERRORS",
    "SKILL",
    "Scorer",
    "SequenceScores",
    "as_text",
    "concatenate",
    "fss_per_lead",
    "lead_mean",
    "leads_with_data",
    "load_scores",
    "mean_spectra",
    "per_lead",
    "save_scores",
    "summarize",
]
