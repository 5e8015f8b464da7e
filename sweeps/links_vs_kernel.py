"""Does a recurrent network do better by learning where to look (TrajGRU's links) than by looking further (kernels)?

The MovingMNIST++ table of Shi et al. 2017. Held fixed: data, optimiser, number of updates, widths. Varied: the
state-to-state connection (ConvGRU's kernel and dilation, TrajGRU's links), and three networks without one. Decided by
the test MSE; the comparisons below were named before any run.

    python sweeps/links_vs_kernel.py                    demo: minutes on two cores, proves the way, decides nothing
    python sweeps/links_vs_kernel.py --scale laptop     an hour or more on two cores
    python sweeps/links_vs_kernel.py --scale paper      every number the paper's: for GPUs
"""

from __future__ import annotations

from nowcastlab.cli.sweep import sweep_command
from nowcastlab.config import mnist_config
from nowcastlab.sweep import DIGITS, Arm, Sweep

ARMS = {
    "Conv-K3-D2": "conv-k3-d2",
    "Conv-K5-D1": "conv-k5-d1",
    "Conv-K7-D1": "conv-k7-d1",
    "Traj-L5": "traj-l5",
    "Traj-L9": "traj-l9",
    "Traj-L13": "traj-l13",
    "Traj-L17": "traj-l17",
    "DFN": "dfn",
    "Conv2D": "conv2d",
    "Conv3D": "conv3d",
}
COMPARISONS = [
    ("Traj-L5", "Conv-K3-D2"),  # fewer links, lower error
    ("Traj-L13", "Conv-K7-D1"),  # and with half the weights
    ("Traj-L9", "Traj-L5"),  # more links help
    ("Traj-L13", "Traj-L9"),
    ("Traj-L17", "Traj-L13"),
]
TEST_SEQUENCES = {"demo": 200, "laptop": 2000, "paper": 10_000}


def links_vs_kernel(scale: str, seeds: tuple[int, ...]) -> Sweep:
    return Sweep(
        name="links-vs-kernel",
        question="Does learning where to look beat looking further?",
        scale=scale,
        arms=[
            Arm(name=name, config=mnist_config(model, scale=scale, threads=1), settings=(DIGITS,))
            for name, model in ARMS.items()
        ],
        seeds=seeds,
        comparisons=COMPARISONS,
        test_sequences=TEST_SEQUENCES[scale],
    )


if __name__ == "__main__":
    sweep_command(links_vs_kernel, __doc__)
