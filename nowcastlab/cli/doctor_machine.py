"""The machine, as `nowcastlab doctor` sees it: processors, memory, disk, ports, GPU, threads."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from nowcastlab.cli.finding import NOTE, OK, PROBLEM, Finding
from nowcastlab.engine import answers

GB = 1e9
# A trial of the demo holds about half of this, with Python, torch and Ray in it.
LEAST_MEMORY_GB, GOOD_MEMORY_GB = 1.0, 4.0
# The demo writes well under 1 GB; a store of all of HKO-7 takes about 5.
LEAST_DISK_GB, GOOD_DISK_GB = 1.0, 10.0
RAY_SHARE = 0.3  # of memory, that Ray takes for its object store, where shared memory has room for it
PORTS = {8265: "the Ray dashboard", 5000: "the MLflow UI"}
CGROUP = Path("/sys/fs/cgroup")


def processors() -> Iterator[Finding]:
    count = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else count
    quota = _cgroup_cpus()
    found = f"{usable} CPU{'s'[: usable > 1]}" + (f" of {count}" if usable < count else "")
    if quota is not None and quota < usable:
        found += f", limited by a cgroup to the time of {quota:g}"
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > 2 * usable:
        yield Finding(
            what="cpu",
            state=NOTE,
            found=f"{found}, load {load:.0f}",
            todo="Busy: everything takes longer than its plan says.",
        )
    else:
        yield Finding(what="cpu", state=OK, found=found)


def memory() -> Iterator[Finding]:
    total, available, limit = _memory_gb()
    found = f"{available:.1f} GB of {total:.1f} free" + (", the limit of a cgroup" if limit else "")
    if available < LEAST_MEMORY_GB:
        yield Finding(
            what="memory",
            state=PROBLEM,
            found=found,
            todo=f"A trial needs up to {LEAST_MEMORY_GB:g} GB: end other programs, or raise the limit.",
        )
    elif available < GOOD_MEMORY_GB:
        yield Finding(
            what="memory", state=NOTE, found=found, todo="Run one trial at a time: --cpus-per-trial with all CPUs."
        )
    else:
        yield Finding(what="memory", state=OK, found=found)


def shared_memory() -> Iterator[Finding]:
    path = Path("/dev/shm")
    if not path.is_dir():
        yield Finding(what="shared memory", state=OK, found="no /dev/shm; Ray uses files, as it does on this system")
        return
    usage = shutil.disk_usage(path)
    total, wanted = usage.total / GB, RAY_SHARE * _memory_gb()[0]
    found = f"{usage.free / GB:.1f} GB of {total:.1f} free in {path}"
    if total < wanted:
        yield Finding(
            what="shared memory",
            state=NOTE,
            found=f"{found}; Ray would use {wanted:.1f}",
            todo="Ray falls back to files, slower. In Docker: --shm-size=2g or more.",
        )
    else:
        yield Finding(what="shared memory", state=OK, found=found)


def disk() -> Iterator[Finding]:
    work = Path("work").resolve()
    there = next(folder for folder in (work, *work.parents) if folder.exists())
    free = shutil.disk_usage(there).free / GB
    found = f"{free:.1f} GB free for {work}"
    if not os.access(there, os.W_OK):
        yield Finding(
            what="disk",
            state=PROBLEM,
            found=f"{there} cannot be written to",
            todo="Results go to work/ in the current folder: change to one that is yours.",
        )
    elif free < LEAST_DISK_GB:
        yield Finding(what="disk", state=PROBLEM, found=found, todo="Free some space, or run in another folder.")
    elif free < GOOD_DISK_GB:
        yield Finding(
            what="disk", state=NOTE, found=found, todo="Enough for the demo; a store of all of HKO-7 takes about 4 GB."
        )
    else:
        yield Finding(what="disk", state=OK, found=found)


def ports() -> Iterator[Finding]:
    for port, what in PORTS.items():
        if not answers("127.0.0.1", port):
            yield Finding(what=f"port {port}", state=OK, found=f"free, for {what}")
            continue
        user = _listener(port)
        yield Finding(
            what=f"port {port}",
            state=NOTE,
            found=f"in use{f' by {user}' if user else ''}",
            todo=f"Fine if that is {what} you started; else give {what} another port.",
        )


def gpu() -> Iterator[Finding]:
    import torch

    driver = _driver()
    if torch.cuda.is_available():
        for k in range(torch.cuda.device_count()):
            card = torch.cuda.get_device_properties(k)
            size = f"{card.total_memory / GB:.0f} GB"
            yield Finding(what=f"gpu {k}", state=OK, found=f"{card.name}, {size}, driver {driver or 'unknown'}")
    elif driver and os.environ.get("CUDA_VISIBLE_DEVICES") != "":
        build = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "a build for CPUs"
        yield Finding(
            what="gpu",
            state=PROBLEM,
            found=f"NVIDIA driver {driver}, but torch {torch.__version__}, {build}, sees no GPU",
            todo="Install the torch build for this driver (pytorch.org); to do without, set CUDA_VISIBLE_DEVICES=",
        )
    else:
        yield Finding(
            what="gpu",
            state=NOTE,
            found="none",
            todo="Demo and laptop scale need none. For paper scale: docs/cluster.md.",
        )


def threads() -> Iterator[Finding]:
    import torch

    named = {n: v for n in ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if (v := os.environ.get(n))}
    found = f"torch uses {torch.get_num_threads()}" + "".join(f", {name}={value}" for name, value in named.items())
    many = [name for name, value in named.items() if value.isdigit() and int(value) > 1]
    if many:
        yield Finding(
            what="threads",
            state=NOTE,
            found=found,
            todo=f"Unset {many[0]} for sweeps: each of Ray's workers would use so many on its one CPU.",
        )
    else:
        yield Finding(what="threads", state=OK, found=found)


def _memory_gb() -> tuple[float, float, bool]:
    """Total and available, of the machine or of the cgroup that limits us; True where it is a cgroup's."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = available = page * os.sysconf("SC_PHYS_PAGES") / GB
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        values = dict(line.split(":") for line in meminfo.read_text().splitlines())
        available = int(values["MemAvailable"].split()[0]) * 1024 / GB
    for limit_file, used_file in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        limit, used = _number(CGROUP / limit_file), _number(CGROUP / used_file)
        if limit is not None and used is not None and limit / GB < total:
            return limit / GB, min(available, (limit - used) / GB), True
    return total, available, False


def _cgroup_cpus() -> float | None:
    try:
        quota, period = (CGROUP / "cpu.max").read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else int(quota) / int(period)


def _number(path: Path) -> float | None:
    try:
        return float(path.read_text())
    except (OSError, ValueError):  # not there, or "max"
        return None


def _driver() -> str | None:
    try:
        asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip().splitlines()[0] if answer.stdout.strip() else None


def _listener(port: int) -> str | None:
    """Which process listens there, where the system lets us see it: /proc/net/tcp gives the socket, /proc/PID/fd whose
    it is."""
    sockets = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:  # 0A: listening
                sockets.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").glob("[0-9]*") if sockets else ():
        try:
            if any(os.readlink(handle) in sockets for handle in (process / "fd").iterdir()):
                return f"{(process / 'comm').read_text().strip()} (process {process.name})"
        except OSError:  # gone, or not ours to look at
            continue
    return None
