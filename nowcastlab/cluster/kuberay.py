"""The same questions put to a KubeRay manifest: a YAML file with a Ray cluster and what belongs to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nowcastlab.cluster.document import Document, Finding, Place
from nowcastlab.cluster.keys import Tree, unknown_keys
from nowcastlab.cluster.security import everybody, secrets

ANYTHING = None
GROUP: Tree = dict.fromkeys(("template", "rayStartParams", "labels", "resources"), ANYTHING)
SPEC: Tree = {
    "rayVersion": ANYTHING,
    "authOptions": dict.fromkeys(("mode", "secretName", "enableK8sTokenAuth")),
    "enableInTreeAutoscaling": ANYTHING,
    "autoscalerOptions": ANYTHING,
    "gcsFaultToleranceOptions": ANYTHING,
    "headServiceAnnotations": ANYTHING,
    "managedBy": ANYTHING,
    "suspend": ANYTHING,
    "upgradeStrategy": ANYTHING,
    "headGroupSpec": {**GROUP, **dict.fromkeys(("serviceType", "headService", "enableIngress"))},
    "workerGroupSpecs": {
        **GROUP,
        **dict.fromkeys(("groupName", "replicas", "minReplicas", "maxReplicas", "numOfHosts", "scaleStrategy")),
        **dict.fromkeys(("idleTimeoutSeconds", "suspend")),
    },
}


# Where each of KubeRay's kinds describes its cluster.
CLUSTER_SPECS: dict[str, Place] = {
    "RayCluster": ("spec",),
    "RayJob": ("spec", "rayClusterSpec"),
    "RayService": ("spec", "rayClusterConfig"),
}


def check_manifest(documents: list[Document]) -> Iterator[Finding]:
    """What to mend in the documents of one file. A job that selects a cluster made elsewhere describes none here."""
    for document in documents:
        yield from everybody(document)
        yield from secrets(document)
        spec = CLUSTER_SPECS.get(str(document.get("kind")))
        if spec is not None and not document.get("spec", "clusterSelector"):
            yield from unknown_keys(document, SPEC, *spec)
            yield from _token(document, spec)
            yield from _doors(document, spec)
            yield from _sums(document, spec)
            yield from _storage(document, spec, documents)
        if document.get("kind") == "Service" and document.get("spec", "type") in ("LoadBalancer", "NodePort"):
            kind = document.get("spec", "type")
            yield document.finding(
                f"A {kind} opens this to other machines. Leave it ClusterIP, and watch by `kubectl port-forward`.",
                "spec",
                "type",
            )


def _token(document: Document, spec: Place) -> Iterator[Finding]:
    if document.get(*spec, "authOptions", "mode") != "token":
        yield document.finding(
            "No token is asked for: whoever reaches the ports may run code. Set authOptions: { mode: token }.",
            *spec,
            "authOptions",
            "mode",
        )


def _doors(document: Document, spec: Place) -> Iterator[Finding]:
    head: Place = (*spec, "headGroupSpec")
    host = document.get(*head, "rayStartParams", "dashboard-host", default="0.0.0.0 by default")
    if host not in ("127.0.0.1", "localhost"):
        yield document.finding(
            f"The dashboard listens on {host}. Set dashboard-host: 127.0.0.1; `kubectl port-forward` reaches it there.",
            *head,
            "rayStartParams",
            "dashboard-host",
        )
    if document.get(*head, "serviceType") in ("LoadBalancer", "NodePort"):
        yield document.finding("The head's service is open to other machines. Use ClusterIP.", *head, "serviceType")
    for place, value in document.scalars(*spec):
        if "--host" in str(value) and "0.0.0.0" in str(value):
            yield document.finding("This listens on every interface. Use 127.0.0.1.", *place, of="0.0.0.0")


def _sums(document: Document, spec: Place) -> Iterator[Finding]:
    if str(document.get(*spec, "headGroupSpec", "rayStartParams", "num-cpus")) != "0":
        yield document.finding(
            "Trials would run on the head, beside the driver and MLflow. Set num-cpus: '0' in its rayStartParams.",
            *spec,
            "headGroupSpec",
            "rayStartParams",
        )
    for place in _worker_groups(document, spec):
        numbers = {key: document.get(*place, key, default=0) for key in ("minReplicas", "replicas", "maxReplicas")}
        wrong = [key for key, value in numbers.items() if not isinstance(value, int)]
        for key in wrong:
            yield document.finding(f"{key} is {numbers[key]!r}: give a whole number.", *place, key)
        if wrong:
            continue
        least, now, most = numbers.values()
        if not least <= now <= most:
            yield document.finding(
                f"replicas {now} does not lie between minReplicas {least} and maxReplicas {most}.", *place, "replicas"
            )
        if most and not document.get(*spec, "enableInTreeAutoscaling") and now < most:
            yield document.finding(
                f"Without enableInTreeAutoscaling the group stays at {now}, and never reaches {most}.",
                *place,
                "maxReplicas",
            )


def _storage(document: Document, spec: Place, documents: list[Document]) -> Iterator[Finding]:
    """One claim, at the path of NOWCASTLAB_SHARED, in the head and in every worker group."""
    for group in [(*spec, "headGroupSpec"), *_worker_groups(document, spec)]:
        pod: Place = (*group, "template", "spec")
        container: Place = (*pod, "containers", 0)
        shared = _find(document, (*container, "env"), "name", "NOWCASTLAB_SHARED").get("value")
        mount = _find(document, (*container, "volumeMounts"), "mountPath", shared)
        volume = _find(document, (*pod, "volumes"), "name", mount.get("name"))
        claimed = volume.get("persistentVolumeClaim")
        claim = claimed.get("claimName") if isinstance(claimed, dict) else None
        if claim is None:
            yield document.finding(
                f"NOWCASTLAB_SHARED ({shared or 'not set'}) is not the mount of a persistentVolumeClaim here: what "
                "this group writes, no other sees.",
                *container,
            )
            continue
        for other in documents:
            if other.get("kind") == "PersistentVolumeClaim" and other.get("metadata", "name") == claim:
                modes = other.sequence("spec", "accessModes")
                if "ReadWriteMany" not in modes:
                    yield other.finding(
                        f"{', '.join(map(str, modes))}: only one node can use this volume. The shared one needs "
                        "ReadWriteMany.",
                        "spec",
                        "accessModes",
                    )


def _worker_groups(document: Document, spec: Place) -> list[Place]:
    return [(*spec, "workerGroupSpecs", i) for i in range(len(document.sequence(*spec, "workerGroupSpecs")))]


def _find(document: Document, place: Place, key: str, value: object) -> dict[str, Any]:
    """The first mapping of a list whose `key` has this value; an empty one where there is none."""
    its = (each for each in document.sequence(*place) if isinstance(each, dict))
    return next((each for each in its if value is not None and each.get(key) == value), {})
