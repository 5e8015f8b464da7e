"""Skill by lead time, and score against cost."""

from __future__ import annotations

import numpy as np

from nowcastlab.figures.cost import CostPoint, draw_cost
from nowcastlab.figures.leads import LeadCurve, draw_key, draw_leads
from nowcastlab.metric_names import parse_metric
from nowcastlab.report.cost import CostRow, cost_of
from nowcastlab.report.findings import Findings
from nowcastlab.report.page.markup import Html, join, tag
from nowcastlab.report.page.pictures import figure_html
from nowcastlab.report.page.scores import every_arm, score_scale, score_title, slug, times
from nowcastlab.report.tables import SETTING_TITLES as SETTINGS
from nowcastlab.report.tables import ordered
from nowcastlab.significance import Cell

COSTS = {"hours": "hours a trial (training and testing)", "flops": "GFLOPs a forecast", "parameters": "parameters"}
SCORES = ("csi", "bmse", "bmae", "mse")  # of which curves are drawn


def curves_html(findings: Findings) -> Html:
    """A picture a score and setting, and one key for each setting."""
    parts = []
    styles = {arm: i for i, arm in enumerate(every_arm(findings.collection))}
    for setting, title in SETTINGS.items():
        its = [c for c in findings.curves if c.setting == setting and c.cell.score in SCORES]
        if not its:
            continue
        cells = list(dict.fromkeys(curve.cell for curve in its))
        arms = ordered(findings.collection, setting)
        its.sort(key=lambda curve: arms.index(curve.arm))
        key = figure_html(
            draw_key(arms, styles=styles), name=f"key-{setting}", alt=f"Key of the lines: {', '.join(arms)}"
        )
        panels = []
        for cell in cells:
            scale = score_scale(cell)
            curves = [
                LeadCurve(
                    name=c.arm,
                    leads=c.lead_minutes,
                    mean=c.mean,
                    low=[np.nan if v is None else v for v in c.low],
                    high=[np.nan if v is None else v for v in c.high],
                )
                for c in its
                if c.cell == cell
            ]
            unit = "lead (frames)" if setting == "digits" else "lead (minutes)"
            figure = draw_leads(
                curves, title=f"{score_title(cell)}{times(scale)}", unit=unit, scale=scale, styles=styles
            )
            last = "; ".join(f"{c.name} {scale * c.mean[-1]:.3g}" for c in curves if np.isfinite(c.mean[-1]))
            alt = f"{score_title(cell)}{times(scale)} by lead. At the last lead: {last or 'no data'}"
            panels.append(figure_html(figure, name=f"leads-{setting}-{slug(cell)}", alt=alt))
        parts.append(join(tag("h3", title) if title else None, key, tag("div", *panels, class_="panels")))
    over, shared = ("episodes", "weather") if findings.collection.kind == "radar" else ("sequences", "their difficulty")
    note = (
        f"Bars are 95% intervals of an arm by itself, over seeds and {over}. Much of their length is {shared}, which "
        "all arms share: two arms whose bars overlap may well differ, and the comparisons above say whether they do."
    )
    return join(tag("p", note), *parts)


def costs_html(findings: Findings) -> Html:
    """Score against each cost that at least two arms have; parameters only where FLOPs are not known."""
    panels = []
    for setting, title in SETTINGS.items():
        rows = [row for row in findings.costs if row.setting == setting]
        for kind, cost_title in COSTS.items():
            known = [(row, _cost(row, kind)) for row in rows]
            if sum(cost is not None for _, cost in known) < 2 or (kind == "parameters" and _has_flops(findings)):
                continue
            cell = Cell(score=parse_metric(rows[0].metric)[1])
            scale = score_scale(cell)
            points = [
                CostPoint(name=row.arm, cost=cost, score=row.score.mean, std=row.score.std, on_front=kind in row.front)
                for row, cost in known
                if cost is not None
            ]
            figure = draw_cost(
                points, cost_title=cost_title, score_title=f"{score_title(cell)}{times(scale)}", scale=scale
            )
            front = ", ".join(p.name for p in sorted(points, key=lambda p: p.cost) if p.on_front)
            caption = f"{title or 'Front'}: nothing is both cheaper and better than {front} (filled, dashed line)."
            panels.append(
                figure_html(
                    figure, name=f"cost-{setting}-{kind}", alt=f"Score against {cost_title}: {caption}", caption=caption
                )
            )
    if not panels:
        return tag("p", "The runs did not record what they cost.")
    note = "Bars are one standard deviation over seeds. Hours are of the machines the trials ran on."
    return join(tag("p", note), tag("div", *panels, class_="panels wide"))


def _cost(row: CostRow, kind: str) -> float | None:
    """In the unit of its title."""
    cost = cost_of(row, kind)
    return cost / 1e9 if cost is not None and kind == "flops" else cost


def _has_flops(findings: Findings) -> bool:
    return sum(row.flops is not None for row in findings.costs) > 1
