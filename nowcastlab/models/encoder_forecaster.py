"""The encoder-forecaster of Shi et al. 2017: recurrent layers from fine to coarse, then back from coarse to fine.

    frames -> econv1 -> ernn1 -> edown1 -> ernn2 -> edown2 -> ernn3
                          |                  |                  |      the forecaster starts from the encoder's states
    forecast <- head <- frnn3 <-  fup2 <-  frnn2 <-  fup1 <-  frnn1

A layer needs the whole sequence below it and nothing else, so layers run one after another over all of time, not steps
over all layers: what does not depend on the state (resampling, the input's part of the gates) is one convolution for
the whole sequence, in the forecaster for five steps at a time. frnn1 has no input, hence no input weights and no work
for them.

B batch. A sequence is a list of steps, each (B, channels, H, W).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from nowcastlab.errors import ConfigError
from nowcastlab.models.cell import SLOPE, Cell, Reading, State
from nowcastlab.models.conv_gru import ConvGRUCell
from nowcastlab.models.conv_lstm import ConvLSTMCell
from nowcastlab.models.convolution import weights_kept
from nowcastlab.models.forecaster import Forecaster
from nowcastlab.models.initialise import initialise
from nowcastlab.models.spec import RecurrentSpec, Resample
from nowcastlab.models.traj_gru import TrajGRUCell

INPUT_CHANNELS = 4  # p, x, y, 1
FORECASTER_READS = 5  # steps at a time: what is read of them, and its gradient, are larger than what the steps keep


def with_coordinates(frames: Tensor) -> Tensor:
    """(n, H, W) to (n, 4, H, W): p, then x and y from -1 to 1, then ones, so that the network knows where it is."""
    n, height, width = frames.shape
    x = torch.linspace(-1, 1, width, device=frames.device, dtype=frames.dtype).expand(n, height, width)
    y = torch.linspace(-1, 1, height, device=frames.device, dtype=frames.dtype)[:, None].expand(n, height, width)
    planes = torch.stack([frames, x, y, torch.ones_like(frames)], dim=1)
    # All that follows keeps the layout of its input. Channels last suits the warp, and a convolution's gradients take
    # 0.6 to 0.9 times as long (one core of an AMD EPYC, 8 to 96 channels). Unmeasured on GPUs, hence not there.
    return planes.contiguous(memory_format=torch.channels_last) if frames.device.type == "cpu" else planes


def unroll(
    cell: Cell,
    resample: nn.Module | None,
    inputs: Sequence[Tensor],
    state: State | None,
    *,
    checkpointing: bool = False,
) -> tuple[list[Tensor], State]:
    """Run a cell over time. Gives H of every step and the last state.

    resample    what brings the inputs to the cell's grid; None for the cell that has no input, then the inputs only say
                how many steps there are
    state       None to start from zeros

    Checkpointing keeps inputs and states alone, and works a step out again when its gradient is due.
    """

    def step(reading: Reading, state: State | None) -> State:
        return cell.begin(reading) if state is None else cell(reading, state)

    def read(*some: Tensor) -> Reading:
        # In place: a leaky ReLU's gradient can be told from its result, and sequences are large.
        return cell.read(F.leaky_relu_(joined(resample, some), SLOPE)) if resample is not None else ()

    def readings(some: Sequence[Tensor]) -> Iterable[Reading]:
        if resample is None:
            return [()] * len(some)
        return zip(*(_Steps.apply(part, some[0].shape[0]) for part in read(*some)), strict=True)

    outputs = []
    if checkpointing and torch.is_grad_enabled():
        for x in inputs:
            state = checkpoint(lambda x, h: step(read(x), h), x, state, use_reentrant=False, preserve_rng_state=False)
            outputs.append(state[0])
    else:
        # An encoder's sequence is read whole. At the forecaster's end memory is fullest, so it reads a part at a time.
        many = len(inputs) if state is None else FORECASTER_READS
        with weights_kept(cell):
            for some in (inputs[at : at + many] for at in range(0, len(inputs), many)):
                for reading in readings(some):
                    state = step(reading, state)
                    outputs.append(state[0])
    assert state is not None
    return outputs, state


def joined(layer: nn.Module, steps: Sequence[Tensor]) -> Tensor:
    """What a convolution makes of a sequence in one piece."""
    assert isinstance(layer, nn.Conv2d | nn.ConvTranspose2d)
    if len(steps) == 1:
        return layer(steps[0])
    device = steps[0].device.type
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        return layer(torch.cat(list(steps)))  # which keeps a piece of lower precision
    transposed = isinstance(layer, nn.ConvTranspose2d)
    setting = layer.stride, layer.padding, layer.dilation, transposed, layer.output_padding, layer.groups
    return _Joined.apply(setting, layer.weight, layer.bias, *steps)


class _Joined(torch.autograd.Function):
    """A convolution that keeps for its gradient the steps, as cells do too, and not the piece, which it joins again:
    5% less memory for 1 to 3% of a step's time."""

    @staticmethod
    def forward(ctx: Any, setting: tuple[Any, ...], weight: Tensor, bias: Tensor | None, *steps: Tensor) -> Tensor:
        ctx.save_for_backward(weight, *steps)
        ctx.setting, ctx.biases = setting, None if bias is None else list(bias.shape)
        return torch.convolution(torch.cat(steps), weight, bias, *setting)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, *steps = ctx.saved_tensors
        _, needs_weight, needs_bias, *need = ctx.needs_input_grad
        of_piece, of_weight, of_bias = torch.ops.aten.convolution_backward(
            grad, torch.cat(steps), weight, ctx.biases, *ctx.setting, [any(need), needs_weight, needs_bias]
        )
        return None, of_weight, of_bias, *(of_piece.split(len(steps[0])) if any(need) else [None] * len(steps))


class _Steps(torch.autograd.Function):
    """A sequence as its steps. An index a step would fill a whole sequence of zeros for each step's gradient. `split`
    does not, but loses the layout where a step has none, as the first step's flow, and a convolution then copies all
    of it back."""

    @staticmethod
    def forward(ctx: Any, sequence: Tensor, batch: int) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        return sequence.split(batch)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None]:
        known = next((grad for grad in grads if grad is not None), None)
        if known is None:
            return None, None
        return torch.cat([torch.zeros_like(known) if grad is None else grad for grad in grads]), None


def build_cell(spec: RecurrentSpec, layer: int, inputs: int) -> Cell:
    """The cell of the layer on the given grid (0 the finest)."""
    filters = spec.filters[layer]
    if spec.cell == "traj_gru":
        return TrajGRUCell(
            inputs, filters, input_kernel=spec.input_kernel, links=spec.links[layer], flow_filters=spec.flow_filters
        )
    convolutional = {"conv_gru": ConvGRUCell, "conv_lstm": ConvLSTMCell}[spec.cell]
    return convolutional(
        inputs,
        filters,
        input_kernel=spec.input_kernel,
        state_kernel=spec.state_kernels[layer],
        state_dilation=spec.state_dilations[layer],
    )


def down(how: Resample, inputs: int, outputs: int) -> nn.Conv2d:
    return nn.utils.skip_init(nn.Conv2d, inputs, outputs, how.kernel, stride=how.stride, padding=how.pad)


def up(how: Resample, inputs: int, outputs: int) -> nn.ConvTranspose2d:
    return nn.utils.skip_init(
        nn.ConvTranspose2d, inputs, outputs, how.kernel, stride=how.stride, padding=how.pad, bias=False
    )


class EncoderForecaster(Forecaster):
    def __init__(self, spec: RecurrentSpec, *, seed: int = 0, checkpointing: bool = False) -> None:
        super().__init__()
        self.spec = spec
        self.checkpointing = checkpointing
        layers = range(len(spec.filters))
        below = [spec.stem_filters, *spec.filters[1:]]  # each down-sampling already widens to the layer it feeds
        self.stem = down(spec.stem, INPUT_CHANNELS, spec.stem_filters)
        self.encoder = nn.ModuleList(build_cell(spec, k, below[k]) for k in layers)
        self.downs = nn.ModuleList(down(spec.downs[k], spec.filters[k], spec.filters[k + 1]) for k in layers[:-1])
        coarse_to_fine = layers[::-1]
        above = [*spec.filters[1:], 0]  # each up-sampling keeps the width of the layer it leaves
        self.forecaster = nn.ModuleList(build_cell(spec, k, above[k]) for k in coarse_to_fine)
        self.ups = nn.ModuleList(
            up(how, spec.filters[k], spec.filters[k]) for how, k in zip(spec.ups, coarse_to_fine, strict=False)
        )
        self.head = self.build_head()
        initialise(self, seed=seed)

    def build_head(self) -> nn.Module:
        """From frnn3 to a frame. The 3x3 layer is not in the paper's tables, but in its parameter counts."""
        spec = self.spec
        first: nn.Module
        if spec.head.stride > 1:
            first = up(spec.head, spec.filters[0], spec.stem_filters)
        else:
            first = nn.utils.skip_init(
                nn.Conv2d, spec.filters[0], spec.stem_filters, spec.head.kernel, padding=spec.head.pad, bias=False
            )
        return nn.Sequential(
            first,
            nn.LeakyReLU(SLOPE, inplace=True),
            nn.utils.skip_init(nn.Conv2d, spec.stem_filters, spec.stem_filters, 3, padding=1),
            nn.LeakyReLU(SLOPE, inplace=True),
            nn.utils.skip_init(nn.Conv2d, spec.stem_filters, 1, 1),
        )

    def forward(self, frames: Tensor, leads: int) -> Tensor:
        self.check_grid(*frames.shape[-2:])
        features = self.features(frames, leads)
        if self.checkpointing and torch.is_grad_enabled():
            forecast = [checkpoint(self.head, h, use_reentrant=False, preserve_rng_state=False) for h in features]
        else:
            parts = [features[at : at + FORECASTER_READS] for at in range(0, leads, FORECASTER_READS)]
            assert isinstance(self.head, nn.Sequential)
            first, rest = self.head[0], self.head[1:]
            forecast = [h for part in parts for h in rest(joined(first, part)).split(frames.shape[0])]
        return torch.cat(forecast, dim=1)

    def features(self, frames: Tensor, leads: int) -> list[Tensor]:
        """The forecaster's finest state at each lead, (B, d, H, W): what the head turns into frames."""
        if leads < 1 or not frames.shape[1]:
            raise ConfigError(f"There is no forecast of {leads} leads from {frames.shape[1]} frames: take 1 or more.")
        sequence = [with_coordinates(frame) for frame in frames.unbind(1)]
        states: list[State] = []
        for resample, cell in zip([self.stem, *self.downs], self.encoder, strict=True):
            assert isinstance(cell, Cell)
            sequence, state = unroll(cell, resample, sequence, None, checkpointing=self.checkpointing)
            states.append(state)
        sequence = sequence[-1:] * leads
        for resample, cell in zip([None, *self.ups], self.forecaster, strict=True):
            assert isinstance(cell, Cell)
            sequence, _ = unroll(cell, resample, sequence, states.pop(), checkpointing=self.checkpointing)
        return sequence

    @torch.inference_mode()
    def links(self, frames: Tensor) -> Tensor | None:
        """The flows of a TrajGRU's second encoder layer at the last input step, in cells of that layer's grid.

        The second layer, or the only one: fine enough to be seen, and its cells already know of motion. A single frame
        has no state for links to look at.
        """
        sequence = [with_coordinates(frame) for frame in frames.unbind(1)]
        shown = min(1, len(self.encoder) - 1)
        for layer, (resample, cell) in enumerate(zip([self.stem, *self.downs], self.encoder, strict=True)):
            if not isinstance(cell, TrajGRUCell) or len(sequence) < 2:
                return None
            if layer == shown:
                _, (h,) = unroll(cell, resample, sequence[:-1], None)
                return cell.flows(F.leaky_relu(resample(sequence[-1]), SLOPE), h).transpose(1, 2)
            sequence, _ = unroll(cell, resample, sequence, None)
        return None

    def check_grid(self, height: int, width: int) -> None:
        spec = self.spec
        ways = list(zip([spec.stem, *spec.downs], [*spec.ups, spec.head][::-1], strict=True))
        for name, size in (("height", height), ("width", width)):
            grid = size
            for there, back in ways:
                coarse = (grid + 2 * there.pad - there.kernel) // there.stride + 1
                returned = (coarse - 1) * back.stride - 2 * back.pad + back.kernel
                if coarse < 1 or returned != grid:
                    stride = 1
                    for step, _ in ways:
                        stride *= step.stride
                    nearest = max(stride, round(size / stride) * stride)
                    raise ConfigError(
                        f"{name} (={size}) does not fit strides {[w.stride for w, _ in ways]}: a grid of {grid} comes "
                        f"back as {max(returned, 0)}. Use a multiple of {stride}, as {nearest}, or change the strides."
                    )
                grid = coarse
