"""`nowcastlab bench models`: what a training step of a recurrent network costs here, beside a plain one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from nowcastlab.bench.timing import Timing
    from nowcastlab.models import Forecaster

# (dataset, whether a CNN): batch and updates of the `paper` scale
PAPER_TRAINING = {
    ("mnist", False): (4, 200_000),
    ("mnist", True): (32, 100_000),
    ("hko7", False): (4, 100_000),
    ("hko7", True): (8, 80_000),
}
SMALL_SCALES = ("demo", "laptop")
SMALL_WIDTHS, SMALL_SIDE = (8, 16, 32), 32  # like theirs, with the paper's flow net of 32 filters
PRODUCT_SIDE, PRODUCTS = 1536, 3  # the matrix product whose rate is this machine's


@dataclass(frozen=True, kw_only=True)
class Case:
    """One network on one batch. A scale is its preset's; a width makes every layer that wide, on a small grid."""

    name: str
    dataset: str = "mnist"
    batch: int = 1
    scale: str = "paper"
    width: int = 0
    checkpointing: bool = False

    @property
    def title(self) -> str:
        size = f", {self.width} channels, {SMALL_SIDE}x{SMALL_SIDE}" if self.width else ""
        scale = f", {self.scale} scale" if self.scale != "paper" else ""
        return f"{self.name}, batch {self.batch}{scale}{size}"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """One line of the table. Shares and ratios are medians over rounds in which all contenders ran in turn."""

    case: Case
    step_ms: float
    frames_per_second: float
    step_gflops: float
    share_of_product_rate: float
    ratio_to_reference: float | None
    paper_hours: float | None


@click.command()
@click.option(
    "--model",
    "models",
    multiple=True,
    default=("traj-l13", "conv-k5-d1"),
    show_default=True,
    help="Network to measure; may be repeated.",
)
@click.option(
    "--dataset",
    type=click.Choice(["mnist", "hko7"]),
    default="mnist",
    show_default=True,
    help="Whose grid and lengths: MovingMNIST++ (mnist) or HKO-7 (hko7).",
)
@click.option(
    "--batch",
    "batches",
    multiple=True,
    type=click.IntRange(1, 64),
    default=(1, 4),
    show_default=True,
    help="Sequences in a batch; may be repeated.",
)
@click.option("--small/--no-small", default=True, show_default=True, help="Also measure TrajGRU-L13 at small widths.")
@click.option(
    "--reference/--no-reference",
    default=True,
    show_default=True,
    help="Also run the same networks written plainly, to compare with.",
)
@click.option("--memory", is_flag=True, help="Measure the peak memory of a step instead of its time.")
@click.option("--checkpointing", is_flag=True, help="With --memory: compute activations twice rather than keep them.")
@click.option("--threads", type=click.IntRange(1, 512), default=1, show_default=True, help="Threads of torch.")
@click.option(
    "--rounds",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="How many rounds; each contender runs once in each.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for scripts.")
@click.pass_context
def command(
    ctx: click.Context,
    models: tuple[str, ...],
    dataset: str,
    batches: tuple[int, ...],
    small: bool,
    reference: bool,
    memory: bool,
    checkpointing: bool,
    threads: int,
    rounds: int,
    as_json: bool,
) -> None:
    """Measure a training step of the networks.

    Beside each recurrent one runs the same network written plainly (a loop over links, gate by gate, step by step; it
    lives with the tests), beside all a plain matrix product, in turn, in one process. A step is forward, loss, backward
    and Adam, at the paper's size; with --small also for the networks of demo and laptop scale, and for others as narrow
    with the flow net as wide as the paper's.

    Counted as FLOPs are the convolutions and matrix products of forward and backward, two operations a multiply-add;
    not sampling, gates or activations. "of products" is their rate in a step over that of a 1536 x 1536 product, by
    whichever of torch's two libraries is the faster here. Convolutions count as if each were worked out directly; on a
    CPU wider ones take fewer multiplications, so the rate may be above that of products.
    "of products" and "x plain" are ratios of CPU seconds, of all threads together, since waiting for a core that others
    use says nothing about the code; the rest is wall time.
    Hours are those of a trial at the paper's scale on this machine, training alone, for the paper's batch: 4, and of
    CNNs 32 on moving digits and 8 on radar.

    A full run takes some minutes; the paper's HKO-7 networks take half a minute a step on one core.

    \b
    Examples:
      nowcastlab bench models
      nowcastlab bench models --model traj-l13 --batch 1 --no-small --rounds 5
      nowcastlab bench models --model conv2d --model conv3d --batch 32 --no-small
      nowcastlab bench models --memory
      nowcastlab bench models --dataset hko7 --model trajgru --batch 1 --memory --checkpointing --no-reference
    """
    import torch

    from nowcastlab.training import machine

    if checkpointing and not memory:
        raise click.UsageError("--checkpointing is measured in memory: add --memory.")
    if small and dataset != "mnist" and ctx.get_parameter_source("small") is ParameterSource.COMMANDLINE:
        raise click.UsageError(f"--small is of moving digits, and --dataset is {dataset}: leave out one of them.")
    if dataset != "mnist":
        small = False
        if models == ("traj-l13", "conv-k5-d1"):
            models = ("trajgru", "convgru")
    cases = [Case(name=name, dataset=dataset, batch=batch) for name in models for batch in batches]
    if small:
        cases += [Case(name="traj-l13", batch=batch, scale=scale) for scale in SMALL_SCALES for batch in batches]
        cases += [Case(name="traj-l13", batch=batch, width=width) for width in SMALL_WIDTHS for batch in batches]
    if memory:
        report_memory(
            cases,
            rounds=rounds,
            threads=threads,
            checkpointing=checkpointing,
            with_reference=reference,
            as_json=as_json,
        )
        return
    rows = []
    if not as_json:
        beside = " against the plain reference" if reference else ""
        click.echo(f"A training step{beside}: {threads} thread(s), torch {torch.__version__}, {rounds} rounds")
        click.echo(f"{'':38}{'ms/step':>10}{'frames/s':>10}{'GFLOP':>8}{'of products':>13}{'x plain':>9}{'hours':>8}")
    with machine.threads(threads):
        for case in cases:
            cost = measure(case, rounds=rounds, with_reference=reference)
            rows.append(cost)
            if not as_json:
                click.echo(as_line(cost))
    if as_json:
        click.echo(
            json.dumps({"threads": threads, "rounds": rounds, "models": [asdict(row) for row in rows]}, indent=2)
        )


def as_line(cost: Cost) -> str:
    ratio = "" if cost.ratio_to_reference is None else f"{cost.ratio_to_reference:.2f}"
    hours = "" if cost.paper_hours is None else f"{cost.paper_hours:,.0f}"
    return (
        f"{cost.case.title:38}{cost.step_ms:10,.0f}{cost.frames_per_second:10.1f}{cost.step_gflops:8.1f}"
        f"{cost.share_of_product_rate:12.0%} {ratio:>9}{hours:>8}"
    )


def measure(case: Case, *, rounds: int, with_reference: bool) -> Cost:
    """One line of the table: a training step, a matrix product and, if asked, the plain network, in turn."""
    import torch

    from nowcastlab.bench.reference import load_reference
    from nowcastlab.bench.timing import interleave
    from nowcastlab.config.network import is_cnn
    from nowcastlab.models.flops import count_flops
    from nowcastlab.models.warp import product

    model, frames, leads = prepare(case)
    left, right = torch.randn(2, PRODUCT_SIDE, PRODUCT_SIDE, generator=torch.Generator().manual_seed(0))
    contenders: dict[str, Callable[[], object]] = {
        "ours": training_step(model, lambda: model(frames, leads)),
        "products (MKL)": lambda: [left @ right for _ in range(PRODUCTS)],
        "products (oneDNN)": lambda: [product(left, right) for _ in range(PRODUCTS)],
    }
    cnn = is_cnn(case.name, case.dataset)
    if with_reference and not cnn:
        forecast = load_reference().forecast
        contenders["reference"] = training_step(model, lambda: forecast(model, frames, leads))
    timings = interleave(contenders, rounds=rounds)
    batch, steps, height, width = frames.shape
    flops = count_flops(model, frames=steps, leads=leads, height=height, width=width, batch=batch, backward=True)
    return cost_of(case, timings, frames=batch * (steps + leads), flops=flops, cnn=cnn)


def cost_of(case: Case, timings: dict[str, Timing], *, frames: int, flops: int, cnn: bool) -> Cost:
    """The line, from what the contenders took."""
    import statistics

    # CPU seconds: on a machine that others use too, waiting for a core says nothing about the code.
    ours = timings["ours"]
    products = map(min, timings["products (MKL)"].cpu_s, timings["products (oneDNN)"].cpu_s)
    product_flops = PRODUCTS * 2 * PRODUCT_SIDE**3
    shares = [(flops / mine) / (product_flops / theirs) for mine, theirs in zip(ours.cpu_s, products, strict=True)]
    paper_batch, paper_updates = PAPER_TRAINING[case.dataset, cnn]
    paper_scale = case.batch == paper_batch and case.scale == "paper" and not case.width
    return Cost(
        case=case,
        step_ms=1e3 * ours.median_s,
        frames_per_second=frames / ours.median_s,
        step_gflops=flops / 1e9,
        share_of_product_rate=statistics.median(shares),
        ratio_to_reference=ours.ratio_to(timings["reference"], cpu=True) if "reference" in timings else None,
        paper_hours=ours.median_s * paper_updates / 3600 if paper_scale else None,
    )


def prepare(case: Case) -> tuple[Forecaster, Any, int]:
    """The network, as it is some way into training (links that look around), a batch, and how far to forecast."""
    import torch

    from nowcastlab.config import mnist_config
    from nowcastlab.config.network import check_trainable
    from nowcastlab.models import build
    from nowcastlab.models.zoo import SETTINGS

    check_trainable(case.name, case.dataset)
    setting = SETTINGS[case.dataset]
    height, width = setting.height, setting.width
    overrides: dict[str, Any] = {}
    if case.width:
        overrides = {"filters": (case.width,) * 3, "stem_filters": 8}
        height = width = SMALL_SIDE
    elif case.scale != "paper":
        config = mnist_config(case.name, scale=case.scale)
        overrides, height, width = dict(config.overrides), config.data.height, config.data.width
    model = build(case.name, case.dataset, checkpointing=case.checkpointing, **overrides)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(".flow.weight"):  # zero at first, and links that do not move would be read too fast
                parameter.copy_(0.02 * torch.randn(parameter.shape, generator=generator))
    return model, torch.rand(case.batch, setting.in_frames, height, width, generator=generator), setting.leads


def training_step(model: Forecaster, forecast: Callable[[], Any]) -> Callable[[], None]:
    """Forward, loss, backward, Adam. The learning rate is too small to change what is being measured."""
    import torch

    optimiser = torch.optim.Adam(model.parameters(), lr=1e-8, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        (forecast() - 0.5).square().mean().backward()
        optimiser.step()

    return step


# --- memory: the peak of a process is for ever, so each contender has a process of its own


def report_memory(
    cases: list[Case], *, rounds: int, threads: int, checkpointing: bool, with_reference: bool, as_json: bool
) -> None:
    """Print the peak memory of each case, ours beside the plain network's: the median over rounds, since where the
    allocator leaves holes is chance, worth some 5% of a process."""
    import statistics

    from nowcastlab.config.network import is_cnn

    rows: list[dict[str, Any]] = []
    if not as_json:
        click.echo(
            f"Peak memory of a process that takes one training step, all code loaded: median of {rounds} processes, "
            f"{threads} thread(s)"
        )
        click.echo(f"{'':38}{'ours':>10}{'plain':>10}")
    for case in cases:
        mine = Case(**{**asdict(case), "checkpointing": checkpointing})
        contenders = {"ours_gib": (mine, False)}
        if with_reference and not is_cnn(case.name, case.dataset):
            contenders["reference_gib"] = (case, True)
        peaks = [
            {name: peak_gib(one, threads=threads, reference=plain) for name, (one, plain) in contenders.items()}
            for _ in range(rounds)
        ]
        row = {"case": asdict(mine), **{name: statistics.median(peak[name] for peak in peaks) for name in contenders}}
        rows.append(row)
        if not as_json:
            plain = f"{row['reference_gib']:.2f} GiB" if "reference_gib" in row else ""
            ours = f"{row['ours_gib']:.2f} GiB"
            click.echo(f"{case.title:38}{ours:>10}{plain:>10}")
    if as_json:
        click.echo(json.dumps({"threads": threads, "rounds": rounds, "models": rows}, indent=2))


def peak_gib(case: Case, *, threads: int, reference: bool) -> float:
    """Of a process of its own that takes one training step."""
    from nowcastlab.errors import NowcastlabError

    take_tiny_steps()  # for the loops that numba compiles and keeps: the first process would be the larger by that
    job = json.dumps({"case": asdict(case), "threads": threads, "reference": reference})
    done = subprocess.run(
        [sys.executable, "-m", "nowcastlab.bench.models", job],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
    )
    if done.returncode != 0:
        raise NowcastlabError(f"The step of {case.title} failed in its own process:\n{done.stderr.strip()[-2000:]}")
    return float(done.stdout)


def take_one_step(job: str) -> float:
    """What the process of `peak_gib` does: its peak resident memory in GiB after one training step."""
    import torch

    from nowcastlab.bench.reference import load_reference

    request = json.loads(job)
    torch.set_num_threads(request["threads"])
    plain = load_reference().forecast
    take_tiny_steps()
    model, frames, leads = prepare(Case(**request["case"]))
    training_step(model, lambda: plain(model, frames, leads) if request["reference"] else model(frames, leads))()
    return peak_bytes() / 2**30


@cache
def take_tiny_steps() -> None:
    """A step of next to nothing by ours and by the plain network: what either has to load is then in both. numba's
    loops take 80 MB, however small or large the network; 32 channels use all of them."""
    from nowcastlab.bench.reference import load_reference

    tiny, frames, _ = prepare(Case(name="traj-l13", width=32))
    frames, plain = frames[:, :2, :16, :16], load_reference().forecast
    training_step(tiny, lambda: tiny(frames, 1))()
    training_step(tiny, lambda: plain(tiny, frames, 1))()


def peak_bytes() -> int:
    """Of this process so far. What getrusage says on Linux begins with the peak of the process it was started by."""
    import resource

    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    print(take_one_step(sys.argv[1]))
