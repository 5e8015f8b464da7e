"""`check`: is a store still what was written?"""

from __future__ import annotations

import json

import click

from nowcastlab.errors import CorruptStore
from nowcastlab.progress import progress


@click.command()
@click.argument("store")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
@click.pass_context
def command(ctx: click.Context, store: str, as_json: bool) -> None:
    """Verify every checksum, the commit records and the schema of STORE, and say what is wrong with which day.

    Every frame is read and decompressed, and each day is compared with the hash under which it was committed. Shards
    that no commit vouches for, left by a writer that was cut short, are counted but are no fault: no reader sees them.

    Ends with exit code 0 when all is well and 3 when anything is not.

    \b
    Examples:
      python -m data_pipeline check work/hko7.zarr
      python -m data_pipeline check work/hko7.zarr --json
    """
    from nowcastlab.store import Finding, Store, check, uncommitted_shards

    try:
        findings = check(store, watch=lambda days: progress(days, label="check", unit="day"))
        opened = Store(store, check_sizes=False)
    except CorruptStore as error:  # the record itself: then nothing of the store can be trusted
        findings, opened = [Finding(day=error.day, what=str(error))], None
    days = opened.days if opened else ()
    left_over = uncommitted_shards(opened) if opened else []
    if as_json:
        result = {
            "store": store,
            "digest": opened.digest if opened else None,
            "days": len(days),
            "frames": sum(day.frames for day in days),
            "planned_days_without_commit": len(opened.record.days) - len(days) if opened else None,
            "uncommitted_shards": left_over,
            "findings": [{"day": finding.day, "what": finding.what} for finding in findings],
        }
        click.echo(json.dumps(result, indent=2))
    else:
        for finding in findings:
            click.echo(f"{finding.day or 'store'}: {finding.what.removeprefix(f'{finding.day}: ')}")
        if left_over:
            click.echo(f"{len(left_over)} uncommitted shards, harmless: run what was filling the store again.")
        if opened and (waiting := len(opened.record.days) - len(days)):
            click.echo(f"{waiting} of {len(opened.record.days)} planned days are not committed yet.")
        frames = sum(day.frames for day in days)
        if findings:
            damaged = {finding.day for finding in findings} - {None}
            click.echo(f"{len(findings)} findings, {len(damaged)} of {len(days)} days damaged.")
        else:
            click.echo(f"{store} is sound: {len(days):,} days, {frames:,} frames, every checksum and hash verified.")
    if findings:
        ctx.exit(CorruptStore.exit_code)
