"""Orthogonal fine-tuning beside PEFT's OFT: time and error of one rotation, and a small transformer for 2,000 steps.

    python -m benchmarks orthogonal adapters         # some ten minutes of one thread; PEFT from the peers' environment

One rotation: forward and backward of 256 vectors with d = 512, all in turn, at two sizes of Q. A transformer of
PyTorch's own layers learns the characters of the standard library; then it is frozen, and rotations of the inputs of
its feed-forward layers learn the same text with lower and upper case exchanged. Every adapter takes the learning rate
of the grid with the least loss after 200 steps of seed 0, then runs on fresh seeds. Memory is what autograd keeps for
one backward.
"""

import copy
import importlib
import importlib.util
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.jobs import Job, Row, command
from benchmarks.options import peer_packages
from benchmarks.orthogonal.run import step_times
from benchmarks.orthogonal.transformer import LETTERS, characters, sequences
from nearkin.linalg.orthonormal import orthogonality_error
from nearkin.orthogonal import BlockRotation

BLOCKS = (16, 32, 64, 128, 256)
GRID = (4e-3, 1.6e-2)
LENGTH, BATCH, SIDE, BLOCK = 32, 4, 64, 16
Rotations = Callable[[], list[Tensor]]


def peft_rotation(d: int, block: int, *, neumann: bool = True) -> Any:
    module = importlib.import_module("peft.tuners.oft.layer").OFTRotationModule
    return module(d // block, block * (block - 1) // 2, block, d, use_cayley_neumann=neumann)


def peft_blocks(module: Any) -> Tensor:
    return module._cayley_batch(module.weight.detach(), module.block_size, module.use_cayley_neumann)


def one_rotation(d: int, block: int, norm: float, seconds: float, *, peft: bool) -> list[Row]:
    """Milliseconds of forward and backward, and ||R^T R - I||_F / sqrt(block), for Q of this spectral norm (about)."""
    made: dict[str, Any] = {"BlockRotation": BlockRotation(d, block)}
    if peft:
        made["PEFT, Cayley-Neumann"] = peft_rotation(d, block)
        made["PEFT, Cayley by a solve"] = peft_rotation(d, block, neumann=False)
    generator = torch.Generator().manual_seed(0)
    Q = torch.randn(made["BlockRotation"].weight.shape, generator=generator) * norm / (2 * block**0.5)
    x, upstream = torch.randn(256, d, generator=generator), torch.randn(256, d, generator=generator)
    steps = {}
    for name, module in made.items():
        module.weight.data.copy_(Q)

        def step(module: Any = module) -> None:
            module.weight.grad = None
            module(x).backward(upstream)

        steps[name] = step
    times = step_times(steps, seconds)
    blocks = {n: m.rotations() if isinstance(m, BlockRotation) else peft_blocks(m) for n, m in made.items()}
    return [{"method": n, "ms": 1e3 * times[n], "error": orthogonality_error(R.detach())} for n, R in blocks.items()]


class Model(nn.Module):
    """A causal character model of PyTorch's own layers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(len(LETTERS), SIDE), nn.Parameter(torch.randn(LENGTH, SIDE) * 0.02)
        layer = nn.TransformerEncoderLayer(SIDE, 4, 4 * SIDE, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(SIDE, len(LETTERS))
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.layers(self.embed(tokens[:, :-1]) + self.places, mask=self.mask, is_causal=True)
        return F.cross_entropy(self.head(x).flatten(0, 1), tokens[:, 1:].flatten())


def with_ours(model: nn.Module) -> Rotations:
    """Add rotations before the feed-forward layers; returns how to read them."""
    found = []
    for layer in model.layers.layers:
        for linear in (layer.linear1, layer.linear2):
            linear.rotation = BlockRotation(linear.in_features, BLOCK)
            linear.register_forward_pre_hook(lambda module, inputs: (module.rotation(inputs[0]),))
            found.append(linear.rotation)
    return lambda: [rotation.rotations().detach() for rotation in found]


def with_peft(model: nn.Module, *, neumann: bool) -> Rotations:
    """The same by PEFT's OFT."""
    peft = importlib.import_module("peft")
    settings = peft.OFTConfig(
        r=0, oft_block_size=BLOCK, target_modules=["linear1", "linear2"], use_cayley_neumann=neumann
    )
    peft.inject_adapter_in_model(settings, model)
    kind = importlib.import_module("peft.tuners.oft.layer").OFTRotationModule
    found = [module for module in model.modules() if isinstance(module, kind)]
    return lambda: [peft_blocks(module) for module in found]


ADAPTERS: dict[str, Callable[[nn.Module], Rotations]] = {
    "BlockRotation": with_ours,
    "PEFT, Cayley-Neumann": lambda model: with_peft(model, neumann=True),
    "PEFT, Cayley by a solve": lambda model: with_peft(model, neumann=False),
}


def exchanged(text: Tensor) -> Tensor:
    """The text with lower and upper case exchanged."""
    return torch.tensor([LETTERS.index(letter.swapcase()) for letter in LETTERS])[text]


def learn(model: nn.Module, text: Tensor, steps: int, lr: float, seed: int) -> float:
    """Train what requires a gradient; returns the CPU seconds of gradients and steps."""
    generator, spent = torch.Generator().manual_seed(seed), 0.0
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr)
    for _ in range(steps):
        tokens = sequences(text, BATCH, LENGTH, generator)
        start = time.process_time()
        optimizer.zero_grad()
        model(tokens).backward()
        optimizer.step()
        spent += time.process_time() - start
    return spent


def kept(model: nn.Module, tokens: Tensor) -> int:
    """Bytes that autograd keeps for the backward pass, shared memory counted once."""
    sizes: dict[int, int] = {}

    def pack(saved: Tensor) -> Tensor:
        sizes[saved.untyped_storage().data_ptr()] = saved.untyped_storage().nbytes()
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
        model(tokens)
    return sum(sizes.values())


def adapted(base: nn.Module, name: str, texts: tuple[Tensor, Tensor], steps: int, lr: float, seed: int) -> Any:
    """One run: loss before and after, seconds, bytes kept, and how far the rotations are from orthogonal."""
    torch.manual_seed(seed)
    model = copy.deepcopy(base).requires_grad_(False)
    rotations = ADAPTERS[name](model)
    tokens = sequences(texts[1], 64, LENGTH, torch.Generator().manual_seed(99))
    with torch.no_grad():
        before = float(model(tokens))
    memory = kept(model, tokens[:BATCH])
    seconds = learn(model, texts[0], steps, lr, seed)
    with torch.no_grad():
        after = float(model(tokens))
    drift = max(orthogonality_error(R) for R in rotations())
    return {"before": before, "loss": after, "seconds": seconds, "kept": memory, "drift": drift}


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    folder = peer_packages(given.peers)
    sys.path += [str(folder)] if folder else []
    peft = importlib.util.find_spec("peft") is not None
    for block, norm in product(BLOCKS[:2] if given.quick else BLOCKS, (0.3, 1.0, 3.0)):
        work = partial(one_rotation, 512, block, norm, 0.2 if given.quick else 1.5, peft=peft)
        yield "orthogonal_rotation", Job({"block": f"{block}, |Q| = {norm:g}"}, work)
    text, held_out = characters()
    torch.manual_seed(0)
    base = Model()
    learn(base, text, 30 if given.quick else 600, 2e-3, 0)
    texts = (exchanged(text), exchanged(held_out))
    for name in ADAPTERS if peft else list(ADAPTERS)[:1]:
        work = partial(chosen, base, name, texts, 10 if given.quick else given.steps, given.seeds)
        yield "orthogonal_adapters", Job({"method": name}, work)


def chosen(base: nn.Module, name: str, texts: tuple[Tensor, Tensor], steps: int, seeds: int) -> Row:
    """The learning rate with the least loss after a tenth of the steps, and runs on fresh seeds."""
    grid = {lr: adapted(base, name, texts, max(1, steps // 10), lr, 0)["loss"] for lr in GRID}
    lr = min(grid, key=lambda lr: grid[lr] if grid[lr] == grid[lr] else float("inf"))
    runs = [adapted(base, name, texts, steps, lr, seed) for seed in range(1, seeds + 1)]
    return {"lr": lr, "grid": grid, "steps": steps, "runs": runs}


def main() -> None:
    command(__doc__, jobs, {}, steps=2000, seeds=1)
