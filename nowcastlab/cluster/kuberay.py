"""The same questions put to a KubeRay manifest: a YAML file with a RayCluster and what belongs to it."""

from __future__ import annotations

from collections.abc import Iterator

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


def check_manifest(documents: list[Document]) -> Iterator[Finding]:
    for document in documents:
        yield from everybody(document)
        yield from secrets(document)
        if document.get("kind") == "RayCluster":
            yield from unknown_keys(document, SPEC, "spec")
            yield from _token(document)
            yield from _doors(document)
            yield from _sums(document)
            yield from _storage(document, documents)
        if document.get("kind") == "Service" and document.get("spec", "type") in ("LoadBalancer", "NodePort"):
            kind = document.get("spec", "type")
            yield document.finding(
                f"A {kind} opens this to other machines. Leave it ClusterIP, and watch by `kubectl port-forward`.",
                "spec",
                "type",
            )


def _token(document: Document) -> Iterator[Finding]:
    if document.get("spec", "authOptions", "mode") != "token":
        yield document.finding(
            "No token is asked for: whoever reaches the ports may run code. Set authOptions: { mode: token }.",
            "spec",
            "authOptions",
            "mode",
        )


def _doors(document: Document) -> Iterator[Finding]:
    head: Place = ("spec", "headGroupSpec")
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
    for place, value in document.scalars("spec"):
        if "--host" in str(value) and "0.0.0.0" in str(value):
            yield document.finding("This listens on every interface. Use 127.0.0.1.", *place, of="0.0.0.0")


def _sums(document: Document) -> Iterator[Finding]:
    if str(document.get("spec", "headGroupSpec", "rayStartParams", "num-cpus")) != "0":
        yield document.finding(
            "Trials would run on the head, beside the driver and MLflow. Set num-cpus: '0' in its rayStartParams.",
            "spec",
            "headGroupSpec",
            "rayStartParams",
        )
    for i in range(len(document.get("spec", "workerGroupSpecs", default=[]))):
        place: Place = ("spec", "workerGroupSpecs", i)
        least, now, most = (document.get(*place, key, default=0) for key in ("minReplicas", "replicas", "maxReplicas"))
        if not least <= now <= most:
            yield document.finding(
                f"replicas {now} does not lie between minReplicas {least} and maxReplicas {most}.", *place, "replicas"
            )
        if most and not document.get("spec", "enableInTreeAutoscaling") and now < most:
            yield document.finding(
                f"Without enableInTreeAutoscaling the group stays at {now}, and never reaches {most}.",
                *place,
                "maxReplicas",
            )


def _storage(document: Document, documents: list[Document]) -> Iterator[Finding]:
    """One claim, at the path of NOWCASTLAB_SHARED, in the head and in every worker group."""
    groups: list[Place] = [("spec", "headGroupSpec")]
    groups += [
        ("spec", "workerGroupSpecs", i) for i in range(len(document.get("spec", "workerGroupSpecs", default=[])))
    ]
    for group in groups:
        claims = {
            volume.get("name"): volume["persistentVolumeClaim"]["claimName"]
            for volume in document.get(*group, "template", "spec", "volumes", default=[])
            if "persistentVolumeClaim" in volume
        }
        container: Place = (*group, "template", "spec", "containers", 0)
        mounts = {m.get("mountPath"): m.get("name") for m in document.get(*container, "volumeMounts", default=[])}
        shared = next(
            (
                e.get("value")
                for e in document.get(*container, "env", default=[])
                if e.get("name") == "NOWCASTLAB_SHARED"
            ),
            None,
        )
        if shared is None or claims.get(mounts.get(shared)) is None:
            yield document.finding(
                f"NOWCASTLAB_SHARED ({shared or 'not set'}) is not the mount of a persistentVolumeClaim here: what "
                "this group writes, no other sees.",
                *container,
            )
            continue
        for other in documents:
            if other.get("kind") == "PersistentVolumeClaim" and other.get("metadata", "name") == claims[mounts[shared]]:
                modes = other.get("spec", "accessModes", default=[])
                if "ReadWriteMany" not in modes:
                    yield other.finding(
                        f"{', '.join(modes)}: only one node can use this volume. The shared one needs ReadWriteMany.",
                        "spec",
                        "accessModes",
                    )
