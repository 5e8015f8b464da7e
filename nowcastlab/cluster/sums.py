"""Whether the numbers of an autoscaling cluster go together."""

from __future__ import annotations

from collections.abc import Iterator

from nowcastlab.cluster.document import UNFILLED, Document, Finding


def wrong_sums(document: Document) -> Iterator[Finding]:
    """Limits that contradict each other or are never reached, and a head that would do the workers' work."""
    if document.get("provider", "type") == "local":
        yield from _own_machines(document)
        return
    types = document.mapping("available_node_types")
    head = document.get("head_node_type")
    most = document.get("max_workers")
    workers = {name: _limits(document, name, most) for name in types if name != head}
    for name, (least, limit) in workers.items():
        place = ("available_node_types", name)
        if limit is not None and least > limit:
            yield document.finding(
                f"{name}: min_workers {least} is more than max_workers {limit}.", *place, "min_workers"
            )
        if isinstance(most, int) and limit is not None and limit > most:
            yield document.finding(
                f"{name} may have {limit} nodes, the cluster only {most} (max_workers). Raise that, or lower this.",
                *place,
                "max_workers",
            )
    if isinstance(most, int):
        total = sum(most if limit is None else limit for _, limit in workers.values())
        if total < most:
            yield document.finding(
                f"max_workers {most} is never reached: the node types together allow {total}.", "max_workers"
            )
    if isinstance(head, str) and head in types:
        yield from _head(document, head)


def _head(document: Document, head: str) -> Iterator[Finding]:
    place = ("available_node_types", head)
    if document.get(*place, "max_workers", default=0) != 0:
        yield document.finding(
            f"{head} is the head's type: the autoscaler would start more of it as workers. Say `max_workers: 0`.",
            *place,
            "max_workers",
        )
    resources = document.mapping(*place, "resources")
    if resources.get("GPU"):
        yield document.finding(
            "The head has a GPU, which would be paid for while it waits for workers.", *place, "resources"
        )
    if resources.get("CPU") != 0:
        yield document.finding(
            "Trials would run on the head, beside the driver and MLflow. Say `CPU: 0` in its resources.",
            *place,
            "resources",
        )


def _own_machines(document: Document) -> Iterator[Finding]:
    machines = document.sequence("provider", "worker_ips")
    most = document.get("max_workers")
    if isinstance(most, int) and most != len(machines):
        yield document.finding(
            f"max_workers is {most}, and there are {len(machines)} worker_ips. Leave max_workers out.", "max_workers"
        )
    addresses = [document.get("provider", "head_ip"), *machines]
    for i, address in enumerate(addresses):
        if address in addresses[:i] and UNFILLED not in str(address):
            yield document.finding(f"{address} is in the cluster twice.", "provider", "worker_ips", i - 1)


def _limits(document: Document, name: str, most: object) -> tuple[int, int | None]:
    """A type without max_workers may grow to the cluster's. What is no number, Ray's own schema refuses."""
    place = ("available_node_types", name)
    least = document.get(*place, "min_workers")
    limit = document.get(*place, "max_workers", default=most)
    return least if isinstance(least, int) else 0, limit if isinstance(limit, int) else None
