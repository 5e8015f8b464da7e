"""`nowcastlab cluster check`: a cluster file, read as a stranger would read it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON list on standard output, for scripts.")
def command(files: tuple[Path, ...], as_json: bool) -> None:
    """Say what is wrong with a cluster file, line by line, without a cloud.

    First Ray's own schema; then what Ray does not see and a cloud finds out late or never: misspelt keys inside
    node_config, ports and addresses open to everybody, a node that asks for no token, secrets, an autoscaler whose
    numbers do not go together, storage that only one node can see, and what is still to be filled in. Takes the files
    of `ray up` (aws, gcp, local) and KubeRay's manifests.

    Exit code 0 when there is nothing to mend, 1 when there is, 2 for a file that cannot be read.

    \b
    Examples:
      nowcastlab cluster check cluster.yaml
      nowcastlab cluster check docs/cluster/*.yaml --json
    """
    from nowcastlab.cluster import check_cluster_file

    findings = {str(path): check_cluster_file(path) for path in files}
    if as_json:
        click.echo(json.dumps([{"file": f, **vars(each)} for f, some in findings.items() for each in some], indent=2))
    else:
        for path, some in findings.items():
            for each in some:
                click.echo(f"{path}:{each.line}: {each.what}")
            if not some:
                click.echo(f"{path}: nothing to mend.")
    if any(findings.values()):
        sys.exit(1)
