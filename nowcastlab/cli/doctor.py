"""`nowcastlab doctor`: is everything here that the other commands need?"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator

import click

from nowcastlab.cli.finding import NOTE, OK, PROBLEM, Finding

COLOURS = {OK: "green", NOTE: "yellow", PROBLEM: "red"}


@click.command()
@click.option("--store", "stores", multiple=True, help="Look at this store too; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, for scripts.")
def command(stores: tuple[str, ...], as_json: bool) -> None:
    """Check this machine: versions, GPU, memory, disk, ports, Ray, MLflow and stores.

    Each line is what was looked at and what was found: ok, a note (it works, but should be known), or a problem, with
    what to do about it. Nothing is changed, nothing started and nothing asked of the network beyond the addresses that
    RAY_ADDRESS and MLFLOW_TRACKING_URI name. A store is opened and its record verified; every checksum of it is for
    `python -m data_pipeline check`.

    Ends with exit code 0 unless there is a problem, then 1.

    \b
    Examples:
      nowcastlab doctor
      nowcastlab doctor --store work/demo.zarr
      nowcastlab doctor --json | jq '.findings[] | select(.state == "problem")'
    """
    findings = []
    for finding in look(stores):
        findings.append(finding)
        if not as_json:
            click.echo(_line(finding))
    problems = sum(finding.state == PROBLEM for finding in findings)
    if as_json:
        click.echo(json.dumps({"problems": problems, "findings": [vars(finding) for finding in findings]}, indent=2))
    else:
        click.echo(_ending(problems))
    if problems:
        sys.exit(1)


def look(stores: tuple[str, ...]) -> Iterator[Finding]:
    """Every finding as it is made, what is quick first."""
    from nowcastlab.cli import doctor_machine as machine
    from nowcastlab.cli import doctor_software as software

    checks: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("python", software.python),
        ("versions", software.versions),
        ("cpu", machine.processors),
        ("memory", machine.memory),
        ("shared memory", machine.shared_memory),
        ("disk", machine.disk),
        ("ports", machine.ports),
        ("gpu", machine.gpu),
        ("threads", machine.threads),
        ("numba", software.kernel),
        ("models", software.own_models),
        ("digits", software.digits),
        ("ray", software.ray),
        ("tracking", software.tracking),
    ]
    for what, check in checks:
        yield from _guarded(what, check)
    for url in stores:
        yield from _guarded("store", lambda url=url: software.store(url))  # type: ignore[misc]


def _guarded(what: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """A look that fails is a finding too: a doctor must not stop at the first illness."""
    try:
        yield from check()
    except Exception as error:  # a broken install can raise anything
        yield Finding(
            what=what,
            state=PROBLEM,
            found=f"could not be looked at: {type(error).__name__}: {error}",
            todo="Install anew: pip install -c constraints.txt -e . in a fresh environment.",
        )


def _line(finding: Finding) -> str:
    state = click.style(f"{finding.state:8}", fg=COLOURS[finding.state], bold=finding.state == PROBLEM)
    line = f"{state}{finding.what:14}{finding.found}"
    return f"{line}\n{'':22}-> {finding.todo}" if finding.todo else line


def _ending(problems: int) -> str:
    if not problems:
        return "\nNo problem found."
    return f"\n{problems} problem{'s'[: problems > 1]}: see what the arrows say."
