"""Machines made of Linux namespaces: each has its own network, processes, host name, home, Ray folder and sshd.

    with Hosts(folder, count=3) as hosts:
        hosts.operator.run("ssh", hosts.machines[0].address, "uptime")

They share the root file system, of which they may not write the project and its environment, and a folder at
/srv/nowcastlab that plays the NFS mount. A bridge joins them; it lies in the operator's namespace, so nothing of it
shows on the real machine. Needs root. Everything is gone at the end: the processes with their process namespaces, the
mounts, links and networks with the processes.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Self

ROOT = Path(__file__).parents[2]
NETWORK = "10.77.0"
SHARED = "/srv/nowcastlab"
HOME = Path("/root")
SHADOWED = ("/srv", "/run", "/var/tmp", "/dev/shm", "/tmp/ray")  # on every machine something of its own

MOUNTS = """
set -e
ip link set lo up
mount --make-rprivate /
for place in {root} {prefix}; do mount --rbind $place $place; mount -o remount,ro,bind $place; done
mount -t tmpfs tmpfs {private}
mkdir {private}/upper {private}/work {private}/ray
mount -t overlay overlay -o lowerdir={home},upperdir={private}/upper,workdir={private}/work {home}
rm -rf {home}/.ray {home}/.ssh {home}/venv
mkdir -p {home}/venv {home}/.ssh {home}/.ray
for part in bin lib pyvenv.cfg; do ln -s {prefix}/$part {home}/venv/$part; done
git -c safe.directory={root} -C {root} show HEAD:pyproject.toml > {home}/venv/installed.toml
for skeleton in .bashrc .profile; do cp /etc/skel/$skeleton {home}/; done
cp {keys}/id {home}/.ssh/id_cluster
cp {keys}/id.pub {home}/.ssh/authorized_keys
chmod -R go-rwx {home}/.ssh
mkdir -p /tmp/ray
mount --bind {private}/ray /tmp/ray
mount -t tmpfs tmpfs /run
mkdir /run/sshd
mount -t tmpfs -o size=512m tmpfs /dev/shm
mount -t tmpfs tmpfs /var/tmp
mount -t tmpfs tmpfs /srv
mkdir {shared_at}
mount --bind {shared} {shared_at}
hostname {name}
{then}
"""

# Killed with whoever started it, and its processes with it: not even a killed test leaves a machine behind.
UNSHARE = (
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "--mount", "--net", "--pid", "--fork", "--uts", "--ipc", "--kill-child", "--mount-proc"),
)

SSHD = """
HostKey {keys}/host
PermitRootLogin prohibit-password
PasswordAuthentication no
StrictModes no
UsePAM no
PidFile none
"""


def why_not() -> str | None:
    """What keeps this machine from making machines; None if nothing does."""
    if sys.platform != "linux":
        return f"namespaces are Linux's; this is {sys.platform}"
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [
        tool
        for tool in ("ip", "unshare", "nsenter", "setpriv", "ssh", "rsync", "git", "curl")
        if not shutil.which(tool)
    ]
    if not Path("/usr/sbin/sshd").exists():
        missing.append("sshd")
    if missing:
        return f"missing here: {', '.join(missing)} (apt-get install openssh-server iproute2 rsync curl git)"
    if any(ROOT.is_relative_to(place) for place in SHADOWED):
        return f"{ROOT} lies where each machine has a folder of its own"
    tried = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True)
    return f"no namespaces: {tried.stderr.strip()}" if tried.returncode else None


class Machine:
    """One of them. `run` is to sit down at it; the others reach it by ssh."""

    def __init__(self, name: str, address: str, folder: Path, shared: Path, keys: Path) -> None:
        self.name, self.address = name, address
        private = folder / name
        private.mkdir(parents=True)
        then = "exec sleep infinity"
        if name != "operator":
            (folder / f"{name}.sshd").write_text(SSHD.format(keys=keys))
            then = f"exec /usr/sbin/sshd -D -e -f {folder}/{name}.sshd"
        script = MOUNTS.format(
            private=private,
            home=HOME,
            prefix=sys.prefix,
            root=ROOT,
            keys=keys,
            shared=shared,
            shared_at=SHARED,
            name=name,
            then=then,
        )
        self.log = folder / f"{name}.log"
        with open(self.log, "w") as log:
            self._holder = subprocess.Popen([*UNSHARE, "bash", "-c", script], stdout=log, stderr=log)
        self.first = self._wait_until_up()

    def _wait_until_up(self) -> int:
        """The process that everything on the machine descends from, as the real machine numbers it."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self._holder.poll() is None:
            children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children").read_text().split()
            if children and Path(f"/proc/{children[0]}/comm").read_text().strip() in ("sshd", "sleep"):
                return int(children[0])
            time.sleep(0.05)
        raise RuntimeError(f"{self.name} did not start: {self.log.read_text()}")

    def start(
        self, *arguments: str, log: IO[str] | int, environment: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Type a command at it, in the home folder; both streams go to `log`."""
        spaces = ["--mount", "--net", "--pid", "--uts", "--ipc"]
        own = {
            "HOME": str(HOME),
            "PATH": f"{sys.prefix}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "RAY_USAGE_STATS_ENABLED": "0",
            "LANG": "C.UTF-8",
            **(environment or {}),
        }
        typed = f"cd {HOME} && exec {shlex.join(arguments)}"
        return subprocess.Popen(
            ["nsenter", "--target", str(self.first), *spaces, "--", "bash", "-c", typed],
            env=own,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(
        self, *arguments: str, timeout: float = 300, environment: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The same, waited for; the exit code is left to whoever asks."""
        process = self.start(*arguments, log=subprocess.PIPE, environment=environment)
        try:
            said, _ = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
        return subprocess.CompletedProcess(arguments, process.returncode, said)

    def processes(self) -> list[str]:
        """Command lines of all that runs on it."""
        return [line.strip() for line in self.run("ps", "-e", "-ww", "-o", "args").stdout.splitlines()[1:]]

    def pull_the_plug(self) -> None:
        """Gone at once: the link first, so that no dying process can tell anybody."""
        _in(self, "ip link set eth0 down")
        self.stop()

    def stop(self) -> None:
        if self._holder.poll() is None:
            os.kill(self.first, signal.SIGKILL)  # the first process of a namespace takes all others with it
            self._holder.wait(timeout=30)


class Hosts:
    def __init__(self, folder: Path, *, count: int) -> None:
        self.folder = folder
        self.shared = folder / "shared"
        self._count = count
        self._all: list[Machine] = []
        self.machines: list[Machine] = []

    def __enter__(self) -> Self:
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _build(self) -> None:
        self.shared.mkdir(parents=True)
        keys = self.folder / "keys"
        keys.mkdir(mode=0o700)
        for name in ("id", "host"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name)], check=True)
        self.operator = self._machine("operator", f"{NETWORK}.1", keys)
        _in(self.operator, "ip link add br0 type bridge")
        _in(self.operator, f"ip address add {self.operator.address}/24 dev br0")
        _in(self.operator, "ip link set br0 up")
        for number in range(1, self._count + 1):
            machine = self._machine(f"host{number}", f"{NETWORK}.{10 + number}", keys)
            self.machines.append(machine)
            _in(machine, f"ip link add eth0 type veth peer name {machine.name} netns {self.operator.first}")
            _in(self.operator, f"ip link set {machine.name} master br0 up")
            _in(machine, f"ip address add {machine.address}/24 dev eth0")
            _in(machine, "ip link set eth0 up")
            # Ray finds its own address by asking which way out there is
            _in(machine, f"ip route add default via {self.operator.address}")

    def _machine(self, name: str, address: str, keys: Path) -> Machine:
        machine = Machine(name, address, self.folder, self.shared, keys)
        self._all.append(machine)
        return machine

    def close(self) -> None:
        for machine in self._all:
            machine.stop()


def _in(machine: Machine, command: str) -> None:
    """Change a machine's network, with the real machine's tools and process numbers."""
    done = subprocess.run(
        ["nsenter", "--target", str(machine.first), "--net", "--", *command.split()], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{machine.name}: {command}: {done.stderr}")
