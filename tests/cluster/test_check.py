"""A cluster file with one thing wrong gets its message, at its line; the shipped ones only have to be filled in."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from nowcastlab.cli import main_group
from nowcastlab.cluster import Finding, check_cluster_file
from nowcastlab.errors import ConfigError

ROOT = Path(__file__).parents[2]
AWS, GCP = ROOT / "cluster.yaml", ROOT / "docs" / "cluster" / "gcp.yaml"
LOCAL, KUBERAY = ROOT / "docs" / "cluster" / "local.yaml", ROOT / "docs" / "cluster" / "kuberay.yaml"
SHIPPED = [AWS, GCP, LOCAL, KUBERAY]


def filled_in(text: str) -> str:
    """A shipped file as its reader would leave it: each placeholder another name."""
    numbers = iter(range(1, 100))
    return re.sub("FILL_IN", lambda _: f"filled-{next(numbers)}", text)


def check(tmp_path: Path, text: str) -> list[Finding]:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    return check_cluster_file(path)


def line_of(text: str, part: str) -> int:
    (number,) = (i for i, line in enumerate(text.splitlines(), 1) if part in line)
    return number


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_file_only_has_to_be_filled_in(path: Path) -> None:
    findings = check_cluster_file(path)
    lines = [i for i, line in enumerate(path.read_text().splitlines(), 1) if "FILL_IN" in line.split("# ")[0]]
    assert sorted({finding.line for finding in findings}) == lines
    assert all(finding.what.startswith("Fill in ") for finding in findings)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_file_filled_in_has_nothing_wrong(path: Path, tmp_path: Path) -> None:
    assert check(tmp_path, filled_in(path.read_text())) == []


# (file, what stands there, what is put in its place, part of the line that is named, part of the message)
DEFECTS = {
    "a misspelt key of EC2": (
        AWS,
        "InstanceMarketOptions:",
        "InstanceMarketOption:",
        None,
        "mean InstanceMarketOptions",
    ),
    "one further down": (
        AWS,
        "VolumeType: gp3, Encrypted: true, DeleteOnTermination: true }\n  gpu",
        "VolumeTyp: gp3, Encrypted: true, DeleteOnTermination: true }\n  gpu",
        "VolumeTyp:",
        "mean VolumeType",
    ),
    "a misspelt key of GCP": (GCP, "preemptible: true", "premptible: true", None, "mean preemptible"),
    "a misspelt key of KubeRay": (KUBERAY, "maxReplicas: 8", "maxReplica: 8", None, "mean maxReplicas"),
    "a misspelt key of Ray's": (AWS, "idle_timeout_minutes:", "idle_timeout_minute:", None, "Ray refuses this"),
    "a type Ray refuses": (AWS, "max_workers: 8 #", "max_workers: many #", None, "Ray refuses this"),
    "a provider nobody knows": (AWS, "type: aws", "type: awz", None, "Ray knows no provider 'awz'"),
    "ssh from everywhere": (
        AWS,
        "cache_stopped_nodes: false",
        "security_group: { IpPermissions: [{ IpRanges: [{ CidrIp: 0.0.0.0/0 }] }] }",
        None,
        "0.0.0.0/0 lets everybody in",
    ),
    "ssh from half the world": (
        AWS,
        "cache_stopped_nodes: false",
        "security_group: { IpPermissions: [{ IpRanges: [{ CidrIp: 80.0.0.0/5 }] }] }",
        None,
        "134,217,728 addresses",
    ),
    "Ray's own security group": (
        AWS,
        "      SecurityGroupIds: [FILL_IN] # the head's\n",
        "",
        "    node_config:\n      InstanceType: g5",
        "gpu has no SecurityGroupIds",
    ),
    "the default network of GCP": (
        GCP,
        "        - subnetwork: FILL_IN # the head's\n",
        "        - network: default\n",
        "networkInterfaces:\n        - network",
        "gpu names no subnetwork",
    ),
    "an open dashboard": (
        AWS,
        "--dashboard-host=127.0.0.1",
        "--dashboard-host=0.0.0.0",
        None,
        "listens on every interface",
    ),
    "an open MLflow": (LOCAL, "--host 127.0.0.1 --port 5000", "--host 0.0.0.0 --port 5000", None, "listens on every"),
    "an open dashboard on Kubernetes": (
        KUBERAY,
        "dashboard-host: 127.0.0.1",
        "dashboard-host: 0.0.0.0",
        None,
        "listens on 0",
    ),
    "no token on the workers": (
        LOCAL,
        "RAY_AUTH_MODE=token ray start --address",
        "ray start --address",
        "ray start --address",
        None,
    ),
    "a token switched off": (
        AWS,
        "RAY_AUTH_MODE=token ray start --address",
        "RAY_AUTH_MODE=disabled ray start --address",
        None,
        "lets anybody run code",
    ),
    "a token that nobody gets": (LOCAL, "  ~/.ray/auth_token: ~/.ray/auth_token\n", "", "file_mounts:", "No node gets"),
    "a token that all can read": (
        LOCAL,
        "  - chmod 700 ~/.ray && chmod 600 ~/.ray/auth_token\n",
        "",
        "setup_commands:",
        "readable to all",
    ),
    "no token on Kubernetes": (
        KUBERAY,
        "authOptions: { mode: token }",
        "authOptions: { mode: disabled }",
        None,
        "No token",
    ),
    "the token in the file": (
        AWS,
        "RAY_AUTH_MODE=token ray start --address",
        "RAY_AUTH_MODE=token RAY_AUTH_TOKEN=abc ray start --address",
        None,
        "This is the token itself",
    ),
    "a key in the file": (AWS, "ssh_user: ubuntu #", "ssh_user: AKIAABCDEFGHIJKLMNOP #", None, "an AWS access key"),
    "more of a type than of all": (
        AWS,
        "max_workers: 8\n    resources",
        "max_workers: 80\n    resources",
        "max_workers: 80",
        "may have 80 nodes, the cluster only 8",
    ),
    "more than the types allow": (AWS, "max_workers: 8 #", "max_workers: 30 #", None, "never reached"),
    "a minimum above the maximum": (AWS, "min_workers: 0 #", "min_workers: 9 #", None, "more than max_workers 8"),
    "trials on the head": (AWS, "resources: { CPU: 0 }", "resources: { CPU: 2 }", None, "beside the driver"),
    "a GPU on the head": (AWS, "resources: { CPU: 0 }", "resources: { CPU: 0, GPU: 1 }", None, "The head has a GPU"),
    "a head that multiplies": (AWS, "max_workers: 0", "max_workers: 2", None, "more of it as workers"),
    "replicas beyond the maximum": (KUBERAY, "replicas: 0", "replicas: 9", None, "does not lie between"),
    "storage that only the head sees": (
        LOCAL,
        "mountpoint -q /srv/nowcastlab ||",
        "true ||",
        "NOWCASTLAB_SHARED=",
        "no node mounts it",
    ),
    "storage that is a copy": (
        LOCAL,
        "NOWCASTLAB_SHARED=/srv/nowcastlab",
        "NOWCASTLAB_SHARED=~/sweeps",
        "NOWCASTLAB_SHARED=",
        "absolute path",
    ),
    "a local copy on the share": (
        LOCAL,
        "LOCAL_STORE=/var/tmp/nowcastlab",
        "LOCAL_STORE=/srv/nowcastlab/copy",
        None,
        "lies on the shared storage",
    ),
    "a database on the share": (
        AWS,
        "sqlite:////mnt/tracking/",
        "sqlite:////mnt/nowcastlab/",
        None,
        "locks do not hold",
    ),
    "a database that dies with the head": (
        AWS,
        "sqlite:////mnt/tracking/",
        "sqlite:////home/ubuntu/",
        None,
        "goes when the",
    ),
    "a claim for one node": (
        KUBERAY,
        "accessModes: [ReadWriteMany]",
        "accessModes: [ReadWriteOnce]",
        "[ReadWriteOnce]\n  s",
        "only one node can use",
    ),
    "a comment in a command": (AWS, ":/ /mnt/nowcastlab; }", ":/ /mnt/nowcastlab; } # EFS", None, "inside a command"),
    "a key that is there twice": (
        AWS,
        "idle_timeout_minutes: 10",
        "idle_timeout_minutes: 10\nhead_node_type: gpu",
        "head_node_type: head",
        "stands here again",
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_named_at_its_line(defect: str, tmp_path: Path) -> None:
    path, good, bad, line, message = DEFECTS[defect]
    text = path.read_text()
    assert text.count(good) == 1 or good == "RAY_AUTH_MODE=token ray start --address", text.count(good)
    if defect == "no token on the workers":  # it is also in the environment that the setup exports: take that away too
        text = text.replace("RAY_AUTH_MODE=token NOWCASTLAB_SHARED", "NOWCASTLAB_SHARED")
        message = "Started without RAY_AUTH_MODE=token (workers)"
    text = text.replace(good, bad)
    place = text[: text.index(line or bad)].count("\n") + 1
    findings = check(tmp_path, filled_in(text))
    assert [finding for finding in findings if message in finding.what and finding.line == place], findings


def test_storage_that_only_the_head_mounts_is_named(tmp_path: Path) -> None:
    text = filled_in(LOCAL.read_text())
    mount = next(line for line in text.splitlines() if "mountpoint -q /srv" in line)
    text = text.replace(mount + "\n", "") + f"\nhead_setup_commands:\n{mount}\n"
    (finding,) = check(tmp_path, text)
    assert "only the head mounts it" in finding.what
    assert finding.line == line_of(text, "NOWCASTLAB_SHARED=/srv")


def test_start_commands_left_to_the_provider_are_refused(tmp_path: Path) -> None:
    text = filled_in(AWS.read_text()).replace("head_start_ray_commands:", "rsync_exclude: []\ncluster_synced_files:")
    assert any("bind the dashboard to 0.0.0.0" in finding.what for finding in check(tmp_path, text))


def test_what_is_not_yaml_says_where(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cluster.yaml:2: not YAML"):
        check(tmp_path, "a: 1\n b: [2\n")


def test_a_job_of_kuberay_is_checked_as_its_cluster_is(tmp_path: Path) -> None:
    """RayJob holds the cluster one level down, and a job without a token is as open as a cluster without one."""
    text = filled_in(KUBERAY.read_text())
    before, cluster, after = text.partition("kind: RayCluster\n")
    assert cluster
    document, rest = after.split("\n---\n", 1) if "\n---\n" in after else (after, "")
    head, _, spec = document.partition("\nspec:\n")
    inner = "\n".join(f"  {line}" if line else line for line in spec.splitlines())
    job = f"{before}kind: RayJob\n{head}\nspec:\n  rayClusterSpec:\n{inner}\n" + (f"---\n{rest}" if rest else "")
    open_job = job.replace("authOptions: { mode: token }", "authOptions: { mode: disabled }")
    assert check(tmp_path, job) == []
    (finding,) = check(tmp_path, open_job)
    assert finding.what.startswith("No token is asked for")
    assert finding.line == line_of(open_job, "mode: disabled")


@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        (AWS, "min_workers: 0 #", "min_workers: none #"),
        (AWS, "resources: { CPU: 0 }", "resources: none"),
        (LOCAL, "file_mounts:", "file_mounts: 3\nfile_mounts_before:"),
        (KUBERAY, "maxReplicas: 8", "maxReplicas: many"),
    ],
)
def test_a_value_of_the_wrong_kind_is_a_finding_and_no_traceback(
    path: Path, good: str, bad: str, tmp_path: Path
) -> None:
    text = filled_in(path.read_text())
    assert text.count(good) == 1
    assert check(tmp_path, text.replace(good, bad))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- FILL_IN\n", "is no cluster file"),
        ("provider: { type: aws }\n? [a, b]\n: c\n", "not YAML: found unhashable key"),
        ("provider: &itself { type: aws, again: *itself }\n", "an alias of itself"),
    ],
)
def test_what_yaml_allows_and_no_cluster_file_has_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        check(tmp_path, text)


def test_what_is_no_cluster_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="neither a `provider`"):
        check(tmp_path, "a: 1\n")


def test_a_yaml_file_cannot_run_code(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not YAML"):
        check(tmp_path, "provider: !!python/object/apply:os.system ['true']\n")


def test_the_command_prints_file_line_and_message_and_exits_with_1() -> None:
    result = CliRunner().invoke(main_group, ["cluster", "check", str(LOCAL)])
    assert result.exit_code == 1
    assert f"{LOCAL}:{line_of(LOCAL.read_text(), 'head_ip: FILL_IN')}: Fill in head_ip" in result.output


def test_a_good_file_exits_with_0(tmp_path: Path) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(filled_in(AWS.read_text()))
    result = CliRunner().invoke(main_group, ["cluster", "check", str(path)])
    assert (result.exit_code, result.output) == (0, f"{path}: nothing to mend.\n")


def test_scripts_get_json() -> None:
    result = CliRunner().invoke(main_group, ["cluster", "check", str(AWS), "--json"])
    first = json.loads(result.output)[0]
    assert first["file"] == str(AWS)
    assert first["where"] == "provider.region"
    assert first["line"] == line_of(AWS.read_text(), "region: FILL_IN")
