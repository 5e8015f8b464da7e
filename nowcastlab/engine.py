"""Ray itself: connect to a cluster or start one here, and map work over its workers with a bar."""

from __future__ import annotations

import contextlib
import os
import socket
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from nowcastlab.errors import NowcastlabError
from nowcastlab.progress import progress

STARTS = 3  # of Ray on this machine
Item = TypeVar("Item")
Result = TypeVar("Result")


def connect(*, cpus: int | None = None) -> None:
    """Join the cluster that RAY_ADDRESS names, or start Ray on this machine. Once a process is enough."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if ray.is_initialized():
        return
    address = os.environ.get("RAY_ADDRESS", "")
    there = host_and_port(address) if address not in ("", "auto", "local") else None
    if there and not answers(*there):  # Ray itself would try for minutes
        raise NowcastlabError(
            f"Ray does not answer on {address}: nothing listens there. Start the cluster (ray up cluster.yaml), or "
            "unset RAY_ADDRESS to use this machine. `nowcastlab doctor` looks at all of it."
        )
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray announces its own future changes on every start
        for left in reversed(range(STARTS)):
            try:
                if address:
                    ray.init(runtime_env=_own_models(), **quiet)
                else:
                    # by no address at all Ray means whatever cluster was started last on this machine, whoever's it is
                    ray.init("local", num_cpus=cpus, include_dashboard=False, **quiet)
                break
            except Exception as error:  # a node that starts too slowly is a plain Exception of Ray's
                if left and "timed out during startup" in str(error):
                    continue  # on a busy machine; the second time its files are in memory
                where, why = address or "this machine", str(error).rstrip(".")
                raise NowcastlabError(
                    f"Ray does not answer on {where}: {why}. `nowcastlab doctor` looks for the reason."
                ) from None
    _protect_token()


def host_and_port(address: str) -> tuple[str, int] | None:
    """Host and port of a RAY_ADDRESS; None for what is no address, as one whose port is a word."""
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        return (parts.hostname, parts.port or (10001 if parts.scheme == "ray" else 6379)) if parts.hostname else None
    except ValueError:
        return None


def answers(host: str, port: int, *, seconds: float = 2.0) -> bool:
    try:
        with socket.create_connection((host, port), timeout=seconds):
            return True
    except OSError:
        return False


def version() -> str:
    """Of the Ray that is installed, and can be imported."""
    import ray

    return ray.__version__


def cpus() -> int:
    """How many CPUs the connected cluster has."""
    import ray

    return int(ray.cluster_resources().get("CPU", 1))


def machines() -> list[dict[str, float]]:
    """What each machine of the connected cluster has, as {"CPU": 4.0, "GPU": 1.0}."""
    import ray

    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def map_unordered(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    label: str,
    unit: str,
    cpus_each: float = 1,
    at_once: int | None = None,
) -> Iterator[tuple[Item, Result]]:
    """Do `work` on every item, somewhere in the cluster, and give each result as it comes.

    At most a few items more than there are CPUs are under way, so that results do not pile up; or `at_once`, on a
    cluster that is not all ours. An exception in the work is raised here as itself. Leaving the loop early calls off
    what has not begun.
    """
    import ray

    @ray.remote(num_cpus=cpus_each, max_retries=2)
    def task(item: Item) -> Result:
        return work(item)  # `work` travels to each worker once, with whatever it closes over

    waiting = list(reversed(list(items)))
    under_way: dict[Any, Item] = {}
    with progress(total=len(waiting), label=label, unit=unit) as bar:
        try:
            while waiting or under_way:
                while waiting and len(under_way) < (at_once or 2 * cpus()):
                    item = waiting.pop()
                    under_way[task.remote(item)] = item
                (done,), _ = ray.wait(list(under_way), num_returns=1)
                item = under_way.pop(done)
                try:
                    result = ray.get(done)
                except ray.exceptions.RayTaskError as error:
                    raise error.cause from None
                bar.update()
                yield item, result
        finally:
            for reference in under_way:
                ray.cancel(reference)


def _own_models() -> dict[str, Any] | None:
    """Workers of a cluster were not started from here, and must be told of the user's own models (models/own.py)."""
    from nowcastlab.models.own import VARIABLE

    files = os.environ.get(VARIABLE)
    return {"env_vars": {VARIABLE: files}} if files else None


def _protect_token() -> None:
    """Ray writes its authentication token for everybody to read: leave it to its owner."""
    with contextlib.suppress(OSError):
        (Path.home() / ".ray" / "auth_token").chmod(0o600)
