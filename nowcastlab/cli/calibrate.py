"""`nowcastlab calibrate`: how often the significance test is wrong, measured where the truth is known."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from nowcastlab.significance.calibration import PowerCheck, Rates

PAPER_SEEDS, PAPER_EPISODES = 3, 56
# True advantages on the logit of the hit rate that are found about every second time.
ADVANTAGES = {"seeds": 0.25, "episodes": 0.22, "both": 0.2}


@click.command()
@click.option(
    "--simulations",
    default=1000,
    show_default=True,
    type=click.IntRange(20),
    help="How often each setting is simulated.",
)
@click.option(
    "--seeds", default="2,3,5,10", show_default=True, help="Numbers of seeds an arm to try, each with 56 episodes."
)
@click.option(
    "--episodes", default="10,20,200", show_default=True, help="Numbers of rain episodes to try, each with 3 seeds."
)
@click.option("--full", is_flag=True, help="Try every number of seeds with every number of episodes.")
@click.option(
    "--truth",
    "truths",
    multiple=True,
    help="Where chance comes from: seeds, episodes, both, ...; may be repeated.  [default: all]",
)
@click.option(
    "--power/--no-power",
    "with_power",
    default=True,
    help="Also check how often a real difference is found.  [default: yes]",
)
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same table.")
@click.option("--figures", type=click.Path(path_type=Path), help="Folder for calibration.png and power.png.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
def command(
    simulations: int,
    seeds: str,
    episodes: str,
    full: bool,
    truths: tuple[str, ...],
    with_power: bool,
    seed: int,
    figures: Path | None,
    as_json: bool,
) -> None:
    """Prove the significance test: how often does it call a difference where there is none?

    Two arms of equal quality are made up again and again, with new weather and new seeds, and compared by the code that
    makes the tables. A 5% test should call a difference in about 5% of cases; 3-7% is asked of it. Beside it stand the
    plain bootstrap and the rule of three standard deviations. Then one arm is made better by a known amount, and the
    share found is put beside the power that `power` states.

    It takes some minutes: about 10 ms a simulation.

    \b
    Examples:
      nowcastlab calibrate
      nowcastlab calibrate --seeds 3 --episodes "" --simulations 5000
      nowcastlab calibrate --truth seeds --no-power --figures pictures
    """
    from nowcastlab.significance.calibration import TRUTHS, power_check, rejection_rates

    unknown = sorted(set(truths) - set(TRUTHS))
    if unknown:
        raise click.UsageError(f"No truth '{unknown[0]}'. There are: {', '.join(TRUTHS)}.")
    many_seeds, many_episodes = _numbers("--seeds", seeds), _numbers("--episodes", episodes)
    settings = [(n, PAPER_EPISODES) for n in many_seeds]
    settings += [(n, e) for e in many_episodes for n in (many_seeds if full else [PAPER_SEEDS])]
    if not settings and (figures or not with_power):
        raise click.UsageError(
            "--seeds and --episodes are both empty, so there is no setting to try. Give one of them."
        )
    if figures:
        figures.mkdir(parents=True, exist_ok=True)  # a folder that cannot be made is said before minutes of work
    chosen = truths or tuple(TRUTHS)
    rates, checks = [], []
    options = {"simulations": simulations, "seed": seed}
    for truth in chosen:
        for n, e in settings:
            watch = _watch(f"{truth}, {n} seeds, {e} episodes")
            rates += rejection_rates(truth, seeds=n, episodes=e, watch=watch, **options)
    for truth, advantage in ADVANTAGES.items() if with_power else ():
        if truth in chosen:
            for n in sorted({PAPER_SEEDS, *(n for n in many_seeds if n == 5)}):
                watch = _watch(f"power, {truth}, {n} seeds")
                checks += power_check(
                    truth, advantage=advantage, seeds=n, episodes=PAPER_EPISODES, watch=watch, **options
                )
    if as_json:
        click.echo(json.dumps({"no_difference": _plain(rates), "power": _plain(checks)}, allow_nan=False))
    else:
        if rates:
            click.echo(_rates_text(rates, simulations))
        if checks:
            click.echo(_power_text(checks))
    if figures:
        from nowcastlab.figures.calibration import draw_example_power, draw_rates

        for name, figure in (("calibration", draw_rates(rates)), ("power", draw_example_power())):
            figure.savefig(figures / f"{name}.png", dpi=110, metadata={"Software": None})


def _numbers(option: str, text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise click.UsageError(f"{option} {text!r}: give whole numbers with commas between, as 2,3,5.") from None
    if any(number < 2 for number in numbers):
        raise click.UsageError(f"{option} {text!r}: each must be at least 2.")
    return numbers


def _watch(label: str) -> Any:
    from nowcastlab.progress import progress

    def watched(items: Iterable[int]) -> Iterator[int]:
        yield from progress(items, label=label, unit="simulation")

    return watched


def _plain(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """JSON knows no NaN."""
    plain = ({**dataclasses.asdict(row), "error": row.error} for row in rows)
    return [{k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in plain]


def _rates_text(rates: list[Rates], simulations: int) -> str:
    lines = [
        f"No difference, {simulations} simulations each: how often one is called at 5% (asked: 3-7%)",
        "",
        "  variance from  score  seeds  episodes  weigh as   this test      plain bootstrap  three deviations",
    ]
    for r in rates:
        setting = f"  {r.truth:<13}  {r.score:<5}  {r.seeds:>5}  {r.episodes:>8}  {r.effective_episodes:>8.1f}  "
        if r.untestable == r.simulations:
            lines.append(f"{setting}none could be tested: too few episodes")
            continue
        lost = f"  ({r.untestable} could not be tested)" if r.untestable else ""
        lines.append(f"{setting}{r.found:>5.1%} +- {r.error:4.1%}  {r.plain:>15.1%}  {r.three_deviations:>16.1%}{lost}")
    inside = sum(0.03 <= r.found <= 0.07 for r in rates)
    sure = sum(r.found + 2 * r.error >= 0.03 and r.found - 2 * r.error <= 0.07 for r in rates)
    lines += ["", f"{inside} of {len(rates)} inside 3-7%, {sure} within two standard errors of it."]
    return "\n".join(lines)


def _power_text(checks: list[PowerCheck]) -> str:
    lines = ["", "A true difference: the share found beside the power stated", ""]
    lines.append("  variance from  score  seeds  episodes  difference   stated     found")
    for c in checks:
        lines.append(
            f"  {c.truth:<13}  {c.score:<5}  {c.seeds:>5}  {c.episodes:>8}  {c.difference:>+10.1%}  {c.stated:>7.1%}  "
            f"{c.found:>6.1%} +- {c.error:.1%}"
        )
    return "\n".join(lines)
