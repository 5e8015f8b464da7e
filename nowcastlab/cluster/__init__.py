"""Cluster files, read critically before a cloud reads them: `check_cluster_file("cluster.yaml")`.

document is YAML with its line numbers; launcher asks Ray's own schema; keys, security, sums and storage say what Ray
does not see; kuberay does the same for a Kubernetes manifest.

A room of its own beside `engine`: that one runs work on Ray, this one only asks Ray's launcher about a file, and starts
nothing.
"""

from nowcastlab.cluster.check import check_cluster_file
from nowcastlab.cluster.document import Finding

__all__ = ["Finding", "check_cluster_file"]
