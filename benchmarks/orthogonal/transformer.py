"""A small language model whose weights can be rotated and rounded to few bits: the task of language_model.py.

Characters of Python's standard library; pre-norm blocks with RMSNorm, rotary positions, attention of several heads and
a gated MLP, as in the models that people quantize. All is a function of a dict of tensors, so that rotations can be
learned through it. Rows are tokens: a weight W (in, out) acts as x W.

Rotations (SpinQuant, Liu et al. 2024, section 3): R1 (d, d) turns the residual stream, R2 (layers, heads, w, w) turns
the values of each head. Without rounding the rotated network is the same function, once the gains of RMSNorm are part
of the weights behind them (`folded`).
"""

import hashlib
import math
import sysconfig
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional as F

Weights = dict[str, Tensor]
LETTERS = "\n" + "".join(map(chr, range(32, 127)))


@dataclass(frozen=True)
class Shape:
    """The network's sizes, and how it is trained."""

    d: int = 256
    layers: int = 4
    heads: int = 4
    hidden: int = 512
    length: int = 128  # of a training sequence, in characters
    steps: int = 1200
    batch: int = 8


def characters() -> tuple[Tensor, Tensor]:
    """The standard library's sources as numbers of `LETTERS`: text to train on, and every tenth file to judge by."""
    folder = Path(sysconfig.get_path("stdlib"))
    left_out = {"site-packages", "test", "tests", "idlelib", "lib2to3", "__pycache__"}
    files = sorted(f for f in folder.rglob("*.py") if not left_out & set(f.relative_to(folder).parts))
    texts = [f.read_text(encoding="utf-8", errors="ignore") for f in files]
    number = torch.full((128,), -1)
    number[[ord(letter) for letter in LETTERS]] = torch.arange(len(LETTERS))
    parts = []
    for judged in (False, True):
        text = "".join(t for i, t in enumerate(texts) if (i % 10 == 9) == judged).encode("ascii", "ignore")
        numbers = number[torch.frombuffer(bytearray(text), dtype=torch.uint8).long()]
        parts.append(numbers[numbers >= 0])
    return parts[0], parts[1]


def sequences(text: Tensor, count: int, length: int, generator: torch.Generator) -> Tensor:
    """Random pieces (count, length + 1) of the text."""
    starts = torch.randint(len(text) - length - 1, (count, 1), generator=generator)
    return text[starts + torch.arange(length + 1)]


def fresh(shape: Shape, generator: torch.Generator) -> Weights:
    """Weights to begin training with; outputs into the residual stream are scaled down by the depth."""
    d, h, n = shape.d, shape.hidden, shape.layers

    def draw(*size: int, scale: float = 1.0) -> Tensor:
        return torch.randn(*size, generator=generator) * scale * size[-2] ** -0.5

    deep = (2 * n) ** -0.5
    return {
        "embed": torch.randn(len(LETTERS), d, generator=generator) * 0.1,
        "qkv": draw(n, d, 3 * d),
        "out": draw(n, d, d, scale=deep),
        "gate_up": draw(n, d, 2 * h),
        "down": draw(n, h, d, scale=deep),
        "head": draw(d, len(LETTERS)),
        "gains": torch.ones(2 * n + 1, d),
    }


def folded(weights: Weights) -> Weights:
    """The same function with the gains of RMSNorm as factors of the weights behind them."""
    gains, result = weights["gains"], dict(weights)
    result["qkv"] = gains[0:-1:2, :, None] * weights["qkv"]
    result["gate_up"] = gains[1:-1:2, :, None] * weights["gate_up"]
    result["head"] = gains[-1][:, None] * weights["head"]
    result["gains"] = torch.ones_like(gains)
    return result


def rotated(weights: Weights, R1: Tensor, R2: Tensor) -> Weights:
    """The folded weights in turned coordinates: x -> x R1 on the residual stream, v -> v R2 in each head."""
    n, heads, w, _ = R2.shape
    d = len(R1)
    q_k, v = weights["qkv"].split([2 * d, d], -1)
    v = (v.reshape(n, d, heads, w).transpose(1, 2) @ R2).transpose(1, 2).reshape(n, d, d)
    out = (R2.mT @ weights["out"].reshape(n, heads, w, d)).reshape(n, d, d)
    return {
        "embed": weights["embed"] @ R1,
        "qkv": R1.T @ torch.cat([q_k, v], -1),
        "out": out @ R1,
        "gate_up": R1.T @ weights["gate_up"],
        "down": weights["down"] @ R1,
        "head": R1.T @ weights["head"],
        "gains": weights["gains"],
    }


def rounded(x: Tensor, bits: int, dim: int) -> Tensor:
    """x on 2^bits - 1 levels between -max |x| and max |x| along `dim`; derivative as of x (straight-through)."""
    with torch.no_grad():
        top = 2 ** (bits - 1) - 1
        step = x.abs().amax(dim, keepdim=True).clamp_min(1e-9) / top
        change = (x / step).round_().clamp_(-top, top).mul_(step).sub_(x)
    return x + change


def plain(x: Tensor, dim: int) -> Tensor:
    """What stands in the place of `rounded` where nothing is rounded."""
    del dim
    return x


def loss(weights: Weights, tokens: Tensor, heads: int, bits: int | None = None) -> Tensor:
    """Mean cross-entropy (nats a character) of the next token, for tokens (b, t + 1).

    With `bits`, every product of a layer has both factors rounded: activations with one scale a token, weights with one
    a column. Embedding and head stay as they are, as is usual.
    """
    quantize: Callable[..., Tensor] = plain if bits is None else partial(rounded, bits=bits)
    x = weights["embed"][tokens[:, :-1]]
    b, t, d = x.shape
    turn = _positions(t, d // heads, x)
    for layer in range(len(weights["qkv"])):
        qkv, out, gate_up, down = (quantize(weights[n][layer], dim=0) for n in ("qkv", "out", "gate_up", "down"))
        y = quantize(_normed(x, weights["gains"][2 * layer]), dim=-1)
        q, k, v = (y @ qkv).view(b, t, 3, heads, d // heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(_turned(q, turn), _turned(k, turn), v, is_causal=True)
        x = x + quantize(mixed.transpose(1, 2).reshape(b, t, d), dim=-1) @ out
        y = quantize(_normed(x, weights["gains"][2 * layer + 1]), dim=-1)
        gate, up = (y @ gate_up).chunk(2, -1)
        x = x + quantize(F.silu(gate) * up, dim=-1) @ down
    logits = _normed(x, weights["gains"][-1]) @ weights["head"]
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def _normed(x: Tensor, gain: Tensor) -> Tensor:
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * gain


def _positions(t: int, w: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines (t, w / 2) of rotary positions (Su et al. 2021)."""
    rates = 10000.0 ** -(torch.arange(0, w, 2) / w)
    angle = torch.arange(t)[:, None] * rates
    return angle.cos().to(like.dtype), angle.sin().to(like.dtype)


def _turned(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    (a, b), (cos, sin) = x.chunk(2, -1), turn
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def trained(shape: Shape, text: Tensor, cache: Path, seed: int = 0) -> Weights:
    """The network after training by AdamW, its gains folded in; kept in `cache` by its sizes and its text."""
    key = hashlib.sha256(f"{asdict(shape)} {seed} cpu".encode() + text.numpy().tobytes()).hexdigest()[:12]
    file = cache / f"language_model_{key}.safetensors"
    if not file.exists():
        weights = _train(shape, text, seed)
        cache.mkdir(parents=True, exist_ok=True)
        save_file({name: value.contiguous() for name, value in weights.items()}, file)
    return load_file(file)


def _train(shape: Shape, text: Tensor, seed: int) -> Weights:
    generator = torch.Generator().manual_seed(seed)
    weights = {n: v.requires_grad_() for n, v in fresh(shape, generator).items()}
    optimizer = torch.optim.AdamW(weights.values(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, partial(_rate, steps=shape.steps))
    start = time.process_time()
    for step in range(shape.steps):
        optimizer.zero_grad()
        value = loss(weights, sequences(text, shape.batch, shape.length, generator), shape.heads)
        value.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), 1.0)
        optimizer.step()
        rates.step()
        if step % 100 == 99:
            print(
                f"  training: step {step + 1}, loss {value.item():.3f}, {time.process_time() - start:.0f} s", flush=True
            )
    return folded({name: value.detach() for name, value in weights.items()})


def _rate(step: int, steps: int) -> float:
    """A short rise, then half a cosine down to a twentieth."""
    rise = max(1, steps // 20)
    return min((step + 1) / rise, 0.05 + 0.475 * (1 + math.cos(math.pi * step / steps)))
