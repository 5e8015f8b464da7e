"""The shipped cluster file over three machines: up, a sweep, a machine lost in the middle, strangers refused, down.

`make test-cluster` runs it; `make test` does not. Needs root on Linux and about five minutes.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from hosts import HOME, ROOT, SHARED, Hosts, Machine, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"needs machines: {why_not()}")

CLUSTER = "cluster.yaml"
SWEEP = str(ROOT / "tests" / "cluster" / "showers.py")
RAY = ("raylet", "gcs_server", "dashboard", "monitor.py", "log_monitor", "ray::")
CLIENT_SERVER = "ray.util.client.server"
TRIALS = ["Last-Frame-s0", *(f"{arm}-s{seed}" for arm in ("ConvGRU", "TrajGRU") for seed in (1, 2, 3))]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """A head, two workers, and the operator's machine with the project, the token and the filled-in file."""
    with Hosts(tmp_path_factory.mktemp("machines"), count=3) as hosts:
        store = hosts.shared / "showers.zarr"
        must(hosts.operator, "python", "-m", "data_pipeline", "synth", str(store), "--days", "3", "--size", "32")
        must(hosts.operator, "mkdir", "-p", "work")
        must(hosts.operator, "git", "-C", str(ROOT), "bundle", "create", f"{HOME}/work/nowcastlab.bundle", "HEAD")
        must(hosts.operator, "ray", "get-auth-token", "--generate")
        must(hosts.operator, "chmod", "600", f"{HOME}/.ray/auth_token")
        (hosts.folder / CLUSTER).write_text(filled_in(hosts))
        yield hosts


def filled_in(hosts: Hosts) -> str:
    """docs/cluster/local.yaml as its reader would fill it in; nothing else is changed."""
    head, *workers = (machine.address for machine in hosts.machines)
    text = (ROOT / "docs" / "cluster" / "local.yaml").read_text()
    for line, value in {
        "head_ip: FILL_IN": f"head_ip: {head}",
        "worker_ips: [FILL_IN, FILL_IN]": f"worker_ips: [{', '.join(workers)}]",
        "ssh_user: FILL_IN": "ssh_user: root",
        "ssh_private_key: FILL_IN": "ssh_private_key: ~/.ssh/id_cluster",
    }.items():
        assert line in text, line
        text = text.replace(line, value)
    return text


def must(machine: Machine, *arguments: str, timeout: float = 300, environment: dict[str, str] | None = None) -> str:
    done = machine.run(*arguments, timeout=timeout, environment=environment)
    assert done.returncode == 0, f"{' '.join(arguments)} on {machine.name}:\n{done.stdout[-4000:]}"
    return done.stdout


def wait_until(what: str, met: Callable[[], bool], *, seconds: float, every: float = 1.0) -> None:
    deadline = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s"
        time.sleep(every)


def file_of(hosts: Hosts) -> str:
    return str(hosts.folder / CLUSTER)


@pytest.fixture(scope="module")
def cluster(hosts: Hosts) -> Hosts:
    """The cluster, up, with both workers in it."""
    must(hosts.operator, "nowcastlab", "cluster", "check", file_of(hosts))
    must(hosts.operator, "ray", "up", "-y", "--no-config-cache", file_of(hosts), timeout=600)

    def both_there() -> bool:
        said = hosts.machines[0].run("bash", "-ic", "ray status", timeout=120).stdout
        return "\n 3 local.cluster.node\n" in said

    wait_until("all machines in the cluster", both_there, seconds=480, every=5)
    head = hosts.machines[0]
    if not any(CLIENT_SERVER in line for line in head.processes()):
        # It waits only so long for its node, and on a busy machine has given up. There must be a door to knock at.
        asked = (
            f"python -m {CLIENT_SERVER} --address={head.address}:6379 --host={head.address} --port=10001 --mode=proxy"
        )
        must(head, "bash", "-c", f"RAY_AUTH_MODE=token setsid nohup {asked} > client.log 2>&1 < /dev/null &")
        wait_until("the client's server", lambda: "10001" in head.run("ss", "-ltn").stdout, seconds=120)
    return hosts


def on_head(hosts: Hosts, command: str) -> list[str]:
    """As the operator types it: through `ray exec`, in the login shell that setup_commands furnished."""
    return ["ray", "exec", "--no-config-cache", file_of(hosts), command]


def sweep_command(store: str, folder: str) -> str:
    return f"python {SWEEP} --store {store} --folder {folder} --seeds 1,2,3"


def table_in(said: str) -> list[str]:
    """The rows of the table a sweep prints at its end."""
    lines = [line.rstrip() for line in said.splitlines()]
    first = next(i for i, line in enumerate(lines) if line.strip().startswith("---"))
    last = next(i for i, line in enumerate(lines) if line.startswith("* best"))
    return lines[first:last]


def steps_done(hosts: Hosts) -> dict[str, int]:
    histories = hosts.shared.glob("sweeps/showers-demo/trials/*/history.jsonl")
    return {path.parent.name: len(path.read_text().splitlines()) for path in histories}


@pytest.fixture(scope="module")
def swept(cluster: Hosts) -> tuple[Hosts, str]:
    """The sweep across the cluster, one machine of which goes away in the middle; and what the sweep said."""
    command = f"RAY_ADDRESS=auto {sweep_command(f'{SHARED}/showers.zarr', f'{SHARED}/sweeps')}"
    log = cluster.folder / "sweep.log"
    with open(log, "w") as out:
        driver = cluster.operator.start(*on_head(cluster, command), log=out)
        try:
            victim = cluster.machines[2]
            wait_until(
                "trials under way, one of them on the machine to be lost",
                lambda: driver.poll() is not None or under_way(cluster, victim),
                seconds=300,
            )
            victim.pull_the_plug()
            assert driver.poll() is None, log.read_text()[-4000:]
            assert driver.wait(timeout=1500) == 0, log.read_text()[-4000:]
        finally:
            if driver.poll() is None:
                driver.kill()
    return cluster, log.read_text()


def under_way(hosts: Hosts, machine: Machine) -> bool:
    """Whether trials have come some way, and one runs on that machine."""
    running = any(line.startswith("ray::ImplicitFunc") for line in machine.processes())
    return running and sum(steps_done(hosts).values()) > 6


def test_a_sweep_that_loses_a_machine_ends_complete_with_one_run_a_trial(swept: tuple[Hosts, str]) -> None:
    hosts, said = swept
    assert "7 of 7 trials finished" in said
    copy = hosts.folder / "mlflow.db"
    must(hosts.machines[0], "cp", f"{HOME}/mlflow/mlflow.db", str(copy))
    with sqlite3.connect(copy) as database:
        runs = database.execute(
            "select key.value, runs.status from runs join tags kind using (run_uuid) join tags key using (run_uuid) "
            "where kind.key = 'nowcastlab.kind' and kind.value = 'trial' and key.key = 'nowcastlab.key'"
        ).fetchall()
    assert Counter(key.split("/")[-1] for key, _ in runs) == dict.fromkeys(TRIALS, 1)
    assert {status for _, status in runs} == {"FINISHED"}


def test_the_table_is_the_one_that_a_single_machine_makes(swept: tuple[Hosts, str]) -> None:
    hosts, said = swept
    alone = must(
        hosts.operator,
        "python",
        *sweep_command(str(hosts.shared / "showers.zarr"), str(hosts.folder / "alone")).split()[1:],
        timeout=600,
    )
    assert table_in(said) == table_in(alone)


def test_each_worker_kept_one_copy_of_the_store(swept: tuple[Hosts, str]) -> None:
    hosts, _ = swept
    stores = must(hosts.machines[1], "find", "/var/tmp/nowcastlab", "-name", "committed.json")
    assert len(stores.splitlines()) == 1


@pytest.mark.parametrize(
    ("door", "port"), [("dashboard and jobs", 8265), ("MLflow", 5000)], ids=["dashboard-and-jobs", "mlflow"]
)
def test_a_web_server_of_the_head_does_not_answer_other_machines(
    swept: tuple[Hosts, str], door: str, port: int
) -> None:
    hosts, _ = swept
    head = hosts.machines[0]
    assert head.run("curl", "-s", "-o", "/dev/null", "-m", "20", f"http://127.0.0.1:{port}/").returncode == 0, door
    refused = hosts.machines[1].run("curl", "-s", "-m", "20", f"http://{head.address}:{port}/")
    assert refused.returncode == 7, f"{door}: {refused.stdout}"  # curl's "could not connect"


STRANGERS = {
    "gcs": "import ray; ray.init(address='{head}:6379', log_to_driver=False)",
    "client": "import ray; ray.init('ray://{head}:10001')",
    "jobs": "from ray.job_submission import JobSubmissionClient as C; C('http://{head}:8265').list_jobs()",
    "state": "from ray.util.state import list_nodes; print(list_nodes(address='{head}:6379'))",
}


# What Ray's client server says only to those whose token it took. It forks a server for each guest while its gRPC
# threads run, and that one may die at once (ray-project/ray#63202): no matter of who is let in.
PAST_THE_DOOR = "Initialization failure from server"


TOKENS = {
    "without a token": {"RAY_AUTH_MODE": "disabled"},
    "with a wrong one": {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64},
}


@pytest.fixture(scope="module")
def strangers(cluster: Hosts) -> dict[tuple[str, str], tuple[int, str]]:
    """Everybody knocks at once, from another machine of the same network: exit code, and what was said."""
    nobody = cluster.folder / "nobody"
    nobody.mkdir()
    knocking = {}
    for door, script in STRANGERS.items():
        for token, environment in TOKENS.items():
            python = ["timeout", "120", "python", "-c", script.format(head=cluster.machines[0].address)]
            own = {"HOME": str(nobody), **environment}
            knocking[door, token] = cluster.machines[1].start(*python, log=subprocess.PIPE, environment=own)
    heard = {who: process.communicate(timeout=180)[0] for who, process in knocking.items()}
    return {who: (process.returncode, heard[who]) for who, process in knocking.items()}


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("door", STRANGERS)
def test_a_stranger_is_refused(strangers: dict[tuple[str, str], tuple[int, str]], door: str, token: str) -> None:
    code, said = strangers[door, token]
    print(f"{door} {token}: exit {code}: {(said.strip().splitlines() or [''])[-1]}")
    assert PAST_THE_DOOR not in said
    assert code not in (0, 124), f"{door}, {token}: {'no answer at all' if code else 'let in'}: {said[-2000:]}"


@pytest.mark.parametrize("door", ["gcs", "client"])
def test_who_has_the_token_is_let_in(cluster: Hosts, door: str) -> None:
    """So that the refusals above are the token's doing."""
    head, worker, *_ = cluster.machines
    script = STRANGERS[door].format(head=head.address)
    done = worker.run("timeout", "120", "python", "-c", script, environment={"RAY_AUTH_MODE": "token"})
    assert done.returncode == 0 or PAST_THE_DOOR in done.stdout, done.stdout[-4000:]


def test_the_token_is_its_owners_alone_on_every_node(swept: tuple[Hosts, str]) -> None:
    hosts, _ = swept
    for machine in hosts.machines[:2]:
        assert must(machine, "stat", "-c", "%a", f"{HOME}/.ray/auth_token").strip() == "600"


def test_ray_down_leaves_no_process_of_ray(swept: tuple[Hosts, str]) -> None:
    """The last test of the file: the others need the cluster."""
    hosts, _ = swept
    must(hosts.operator, "ray", "down", "-y", file_of(hosts), timeout=300)

    def left() -> list[str]:
        return [line for machine in hosts.machines[:2] for line in machine.processes() if any(w in line for w in RAY)]

    wait_until(f"no process of Ray: {left()}", lambda: not left(), seconds=300, every=3)
