"""A trainable index as a torch module: dropped between an item tower and any loss (GCD, section 3.2)."""

import warnings
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx

from nearkin._check import check_choice, check_finite, check_integer, check_real, check_vectors
from nearkin._fields import counted
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback
from nearkin.linalg.orthonormal import orthogonality_error
from nearkin.orthogonal.diagnostics import is_orthogonal
from nearkin.orthogonal.givens_descent import GivensDescent
from nearkin.orthogonal.matching import most_matchings
from nearkin.orthogonal.optimizer import Adam
from nearkin.quantization.codebooks import CoarseQuantizer, assign, decode
from nearkin.quantization.faiss_bridge import MAX_BITS
from nearkin.quantization.layer import curvature
from nearkin.quantization.layer.centroids import (
    LayerCentroids,
    gathered,
    is_first,
    on_host,
    several,
    summed,
    take_from_first,
)
from nearkin.quantization.product import ProductQuantizer
from nearkin.records import RowForms

CENTROIDS = ("average", "gradient")
CHECK_EVERY = 100  # batches on a device between two checks that rows are finite
PASS, COLLECT, TRAIN = 0, 1, 2
BY_GRADIENT = {  # GCD, Algorithm 2, on the gradient that reaches R
    "givens-random": "random",
    "givens-greedy": "greedy",
    "givens-steepest": "steepest",
}
ROTATIONS = (*BY_GRADIENT, "cayley", "frozen")
ANGLE = 1e-3  # a Givens step's usual angle in radians: `GivensDescent` with moments makes `lr` one, whatever the loss
MOMENTS = (0.9, 0.99)


def nearest(z: Tensor, codebooks: Tensor) -> Tensor:
    """Codes (b, M) int64 of rotated vectors z (b, d) under codebooks (M, K, d/M): FAISS's kernels on the CPU."""
    if on_host(z):
        return torch.from_numpy(assign(z.numpy(), codebooks.numpy())).long()
    M, _, width = codebooks.shape
    blocks = z.view(len(z), M, width).transpose(0, 1)
    half_norms = codebooks.square().sum(-1) / 2
    return (torch.bmm(blocks, codebooks.transpose(1, 2)) - half_norms[:, None]).argmax(-1).T


def _decoded(codes: Tensor, codebooks: Tensor) -> Tensor:
    """Rotated rows (b, d) of codes (b, M)."""
    subspace = torch.arange(codebooks.shape[0], device=codes.device)
    return codebooks[subspace, codes].flatten(1)


class StraightThrough(torch.autograd.Function):
    """(x, R, C, c, turns) -> (T(x), distortion, codes), with c (b, d) the vectors' coarse centroids or None.

    With z = (x - c) R, the decoded y = phi(z) and sg the stop-gradient, the two outputs are *defined* as

        T = c + (y + z - sg z) R^T
        distortion = (1/b) ||z - y||^2

    so that, for incoming gradients g of T and g_D of the distortion, and with delta = x - T:

        dx = g + |g| |delta| / (|delta|^2 + |x - mean x|^2) P delta     (Frobenius norms over the batch)
        dC = scatter of g R - (2 g_D / b) (z - y) to the chosen centroids
        dR = delta^T (g R - (2 g_D / b) y) = delta^T (g - (2 g_D / b) y R^T) R      (None unless `turns`)

    The first is not the definition's g + (2 g_D / b) delta: the right weight of that pull depends on the scales of loss
    and vectors. Here its norm over that of g is the distortion's share of the variance, so that small errors pull
    little, and large ones as strongly as the loss. P projects a row on its own direction: the loss may lengthen a
    vector for ever, as its code does not follow, while a pull across it holds back what is still to be learned.
    Normalised vectors are thus not pulled. g_D moves rotation and codebooks only.

    The last is the gradient up to a part normal to SO(d): only the skew part of R^T dR changes R, and
    skew(z^T h - y^T h) = skew((z - y)^T h) as y^T y is symmetric; two products instead of four. Coarse
    centroids take no gradient.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx, x: Tensor, R: Tensor, C: Tensor, c: Tensor | None, turns: bool = True
    ) -> tuple[Tensor, ...]:
        rows = x if c is None else x - c
        z = rows @ R
        codes = nearest(z, C)
        y = _decoded(codes, C)
        T = y @ R.T if c is None else torch.addmm(c, y, R.T)
        ctx.save_for_backward(x, R, y, z, T, codes, c)  # pyright: ignore[reportArgumentType]
        ctx.shape, ctx.turns = C.shape, turns
        ctx.mark_non_differentiable(codes)
        return T, (z - y).square().sum() / max(len(x), 1), codes

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        g, g_distortion, _ = gradients
        x, R, y, z, T, codes, c = ctx.saved_tensors
        need_x, need_R, need_C = ctx.needs_input_grad[:3]
        share = 2 * g_distortion / max(len(x), 1)
        delta = x - T
        dx = None
        if need_x:
            total = summed(torch.cat([x.sum(0), x.new_full((1,), len(x))]))
            parts = g, delta, x - total[:-1] / total[-1]
            slope, error, spread = summed(torch.stack([part.square().sum() for part in parts]))
            pull = (slope * error).sqrt() / (error + spread).clamp_min(torch.finfo(x.dtype).tiny)
            unit = nn.functional.normalize(x)
            dx = torch.addcmul(g, unit, pull * (delta * unit).sum(1, keepdim=True))  # reads no number from a device
        dC = None
        if need_C:
            M, K, width = ctx.shape
            places = (codes + K * torch.arange(M, device=codes.device)).reshape(-1)
            sums = (g @ R - share * (z - y)).reshape(-1, width)
            dC = sums.new_zeros(M * K, width).index_add_(0, places, sums).view(ctx.shape)
        dR = None
        if need_R and ctx.turns:
            h = g - share * (T if c is None else T - c)  # g - (2 g_D / b) y R^T
            # one product over the rows if they are many
            dR = delta.T @ (h @ R) if len(h) < len(R) else (delta.T @ h) @ R
        return dx, dR, dC, None, None


class Phases(nn.Module):
    """The current phase, the steps of training so far and the collected vectors, all of it in the `state_dict`.

    A start needs at least `fewest` vectors; `wanted` are collected before it.
    """

    buffer: Tensor  # (wanted, d), empty once training has begun

    def __init__(self, warmup_steps: int, buffer_size: int, *, fewest: int, d: int) -> None:
        super().__init__()
        self.warmup_steps: int = warmup_steps
        self.fewest: int = fewest
        self.wanted: int = max(buffer_size, fewest)
        self.now: int = PASS if warmup_steps else COLLECT
        self.steps: int = 0
        self.due: int = 0  # the step of training from which vectors are collected again; 0 for never
        self.register_buffer("buffer", torch.zeros(0, d))

    def get_extra_state(self) -> Tensor:
        return torch.tensor([self.now, self.steps, self.due])

    def set_extra_state(self, state: Tensor) -> None:
        self.now, self.steps, self.due = state.tolist()

    def collects(self) -> bool:
        """Whether the next vectors are counted or collected by `take`."""
        return self.now != TRAIN or 0 < self.due <= self.steps

    def take(self, x: Tensor) -> bool:
        """Count a step on vectors x (b, d); returns whether enough are collected to start."""
        self.steps += self.now != TRAIN  # `forward` counts those of training
        if self.now == PASS:
            if self.steps <= self.warmup_steps:
                return False
            self.now = COLLECT
        room = self.wanted - len(self.buffer)
        self.buffer = torch.cat([self.buffer, x[:room].to(self.buffer)])
        return len(self.buffer) >= self.wanted

    def finish(self) -> None:
        """Begin training; frees the collected vectors."""
        self.now, self.due = TRAIN, 0
        self.buffer = self.buffer.new_zeros(0, self.buffer.shape[1])

    def _load_from_state_dict(self, state: dict, prefix: str, *others: object) -> None:
        kept = state.get(f"{prefix}buffer")
        if kept is not None:  # it grows while rows are collected
            self.buffer = self.buffer.new_zeros(len(kept), self.buffer.shape[1])
        super()._load_from_state_dict(state, prefix, *others)  # type: ignore[arg-type]


class LayerRotation(nn.Module):
    """R (d, d) after the warm start, and its update rule.

    "givens-..." : R is an ordinary parameter with a gradient, for `GivensDescent`.
    "cayley": R = R_0 (I - A)(I + A)^-1, A the skew matrix of ordinary parameters (GCD, section 1.1).
    "frozen": R stays at the warm start (the baseline of GCD, section 3.2).
    """

    def __init__(self, d: int, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.base: nn.Parameter = nn.Parameter(torch.eye(d), requires_grad=kind in BY_GRADIENT)
        if kind == "cayley":
            self.skew: nn.Parameter = nn.Parameter(torch.zeros(d * (d - 1) // 2))

    def forward(self) -> Tensor:
        if self.kind != "cayley":
            return self.base
        d = len(self.base)
        i, j = torch.triu_indices(d, d, 1, device=self.skew.device)
        upper = self.skew.new_zeros(d, d).index_put((i, j), self.skew)
        A, eye = upper - upper.T, torch.eye(d, device=self.skew.device, dtype=self.skew.dtype)
        # I + A and I - A commute; I + A is never singular
        return self.base @ torch.linalg.solve_ex(eye + A, eye - A).result

    def set(self, R: Tensor) -> None:
        """Continue from R (d, d)."""
        with torch.no_grad():
            self.base.copy_(R)
            if self.kind == "cayley":
                self.skew.zero_()

    def optimizer(self, lr: float, n_matchings: int = 1) -> GivensDescent | None:
        """Algorithm 2 on R, `n_matchings` matchings a step; None if R needs no optimizer. `lr` is an angle in radians:
        steps are divided by the derivatives' running root mean square."""
        if self.kind not in BY_GRADIENT:
            return None
        count = min(n_matchings, most_matchings(len(self.base)))
        return GivensDescent(
            [self.base], lr, BY_GRADIENT[self.kind], n_matchings=count, momentum=Adam(MOMENTS), stabilize_every=1000
        )


class IndexingLayer(nn.Module):
    """T(x) = phi(x R) R^T with a straight-through gradient: towers, rotation and codebooks train together.

    `forward(x (b, d))` returns the quantized rows (b, d) and the distortion (1/b) ||x R - phi(x R)||^2, to be added to
    the loss (GCD, eq. 1). It moves rotation and codebooks, so that any weight will do. The lengths of vectors are held
    near those of their codes, by a pull in proportion to the loss's gradient.

    Training goes through phases that are part of the `state_dict`: vectors "pass" unchanged for `warmup_steps` steps;
    the layer "collects" `buffer_size` vectors; rotation and codebooks start from them by `ProductQuantizer`'s learner;
    then they "train". They start again from present vectors whenever the number of steps has doubled, but not after
    `start` or `start_from`. The distortion is 0 until the start. In `eval()` nothing is trained, and vectors get the
    same codes as by `codes` and in an index of `to_quantizer()`.

    `torch.compile` breaks its graph at this layer, whose codes come from FAISS: only the towers are compiled. It
    computes in float32, also under autocast and in a module of another type. On a device a training step synchronizes
    only to update R: never with "frozen" and "cayley"; "givens-random" is the cheapest selection of pairs. There,
    vectors are checked for NaN in every hundredth batch.

    Under `DistributedDataParallel` all processes must call it with the same number of batches: vectors are collected
    from all of them, rank 0 trains the start, and averages include the vectors of all, so that all hold the same layer
    bit for bit (`broadcast_buffers=False` saves a pass over the averages). Call `start(X)` before the module is
    wrapped.

    Parameters
    ----------
    d: width of the vectors; n_subspaces must divide it.
    n_subspaces, n_centroids: M and K; with 256 centroids M is the number of bytes of a code.
    n_lists: number of inverted lists, 0 for none. With lists the residual is quantized; they are fixed after the start.
    rotation: "givens-random" | "givens-greedy" | "givens-steepest" (Algorithm 2 on R's gradient by
        `rotation_optimizer`), "cayley" (an ordinary parametrisation), "frozen" (after the start, the paper's baseline).
        A pair such as ("givens-greedy", 4) updates R in every fourth step only, by four matchings; the other steps cost
        as much as with "frozen".
    centroids: "average" (means of the vectors that chose them) or "gradient" (an ordinary parameter). Dead ones move
        next to used ones. Both average over 64 vectors a centroid, or over the given number: ("average", 4096).
    warmup_steps, buffer_size, max_iter: see above; the last is of the start. Vectors are collected until there are
        enough for every centroid.
    rotation_lr: a Givens step's usual angle in radians. 0.001 suits thousands of mini-batches; a hundred full-batch
        steps after an early start did best with 0.1.
    random_state: seed of the start.

    Attributes
    ----------
    phase: "pass", "collect" or "train".
    codebooks: (M, K, d/M), in the rotated space.
    rotation_matrix: (d, d), without a graph.

    References
    ----------
    Jiang et al. (2022), eq. 1 and Algorithm 2 (GCD), arXiv:2203.05082.

    Examples
    --------
    >>> import torch
    >>> layer = nk.quantization.IndexingLayer(8, n_subspaces=2, n_centroids=4, buffer_size=64)
    >>> quantized, distortion = layer(torch.randn(64, 8, generator=torch.Generator().manual_seed(0)))
    >>> layer.phase, quantized.shape
    ('train', torch.Size([64, 8]))
    """

    coarse: Tensor
    _batches: int = 0  # seen on a device while training

    def __init__(
        self,
        d: int,
        n_subspaces: int,
        n_centroids: int = 256,
        n_lists: int = 0,
        rotation: str | tuple[str, int] = "givens-greedy",
        *,
        centroids: str | tuple[str, int] = "average",
        warmup_steps: int = 0,
        buffer_size: int = 8192,
        max_iter: int = 200,
        rotation_lr: float = ANGLE,
        random_state: Seed = 0,
    ) -> None:
        super().__init__()
        self.d: int = check_integer(d, "d", low=1)
        self.n_subspaces: int = check_integer(n_subspaces, "n_subspaces", low=1)
        self.n_centroids: int = check_integer(n_centroids, "n_centroids", low=2, high=2**MAX_BITS)
        self.n_lists: int = check_integer(n_lists, "n_lists", low=0)
        kind, every = (rotation, 1) if isinstance(rotation, str) else rotation
        self.kind: str = check_choice(kind, "rotation", ROTATIONS)
        self.rotation_every: int = check_integer(every, "rotation[1]", low=1, high=None if kind in BY_GRADIENT else 1)
        name, horizon = (centroids, 64 * n_centroids) if isinstance(centroids, str) else centroids
        check_choice(name, "centroids", CENTROIDS)
        if d % n_subspaces:
            raise ValueError(
                f"n_subspaces is {n_subspaces}, which does not divide d={d}; give one of "
                f"{', '.join(str(m) for m in range(1, d + 1) if d % m == 0)}"
            )
        self.max_iter: int = check_integer(max_iter, "max_iter", low=1)
        self.rotation_lr: float = check_real(rotation_lr, "rotation_lr", above=0)
        self.random_state = random_state
        self.rotation: LayerRotation = LayerRotation(d, self.kind)
        self.centroids: LayerCentroids = LayerCentroids(
            (n_subspaces, n_centroids, d // n_subspaces),
            by_gradient=name == "gradient",
            horizon=check_integer(horizon, "centroids[1]", low=1),
        )
        self.register_buffer("coarse", torch.zeros(n_lists, d))
        self.phases: Phases = Phases(
            check_integer(warmup_steps, "warmup_steps", low=0),
            check_integer(buffer_size, "buffer_size", low=1),
            fewest=max(n_centroids, n_lists),
            d=d,
        )

    # ---- training --------------------------------------------------------------------------------------------------

    @torch.compiler.disable
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Quantized rows (b, d) and the distortion; ValueError for another width or vectors that are not finite."""
        self._check(x)
        if self.training and self.phases.collects():
            self._collect(x.detach())
        if self.phase != "train" or not (self.training or len(x)):
            return self._tied(x), x.new_zeros(())
        if not self.training:
            return self._evaluated(x)
        with torch.autocast(x.device.type, enabled=False):
            rows, R = x.float(), self.rotation()
            coarse = self.coarse[self._lists(rows)] if self.n_lists else None
            self.phases.steps += 1
            turns = self.phases.steps % self.rotation_every == 0
            T, distortion, codes = StraightThrough.apply(rows, R, self.codebooks, coarse, turns)
            if torch.is_grad_enabled():
                self.centroids.observe(rows.detach() if coarse is None else rows.detach() - coarse, codes, R.detach())
        return T.to(x.dtype), distortion

    def start(
        self, X: ArrayLike | None = None, weights: ArrayLike | None = None, callback: Callback | None = None
    ) -> bool:
        """Train rotation and codebooks now from vectors X (n, d), default those collected; returns whether it did.

        `weights` (n,) weight the errors of vectors; `callback` is called after each round. With fewer vectors than
        centroids the layer warns and continues to collect.
        """
        rows = self.phases.buffer.cpu() if X is None else torch.from_numpy(check_vectors(X, n_features=self.d)).float()
        if len(rows) < self.phases.fewest:
            warnings.warn(
                f"vectors: {len(rows)}, fewer than the {self.phases.fewest} centroids: the layer passes them through "
                "and goes on collecting; show it more, or give a smaller n_centroids (n_lists)",
                stacklevel=2,
            )
            return False
        learned = ProductQuantizer(
            self.n_subspaces, self.n_centroids, n_lists=self.n_lists, max_iter=self.max_iter,
            random_state=self.random_state,
        ).fit(rows.numpy(), weights=weights, callback=callback)  # fmt: skip
        self.start_from(learned)
        residuals = rows
        if learned.coarse_centroids_ is not None:
            residuals = rows - torch.from_numpy(learned.coarse_centroids_[self._lists(rows)])
        self.centroids.begin(residuals.numpy(), learned.rotation_)
        return True

    def start_from(self, quantizer: ProductQuantizer) -> "IndexingLayer":
        """Begin training from a fitted quantizer of the same shape, for example one updated by `partial_fit`."""
        shape = tuple(self.codebooks.shape)
        lists = 0 if quantizer.coarse_centroids_ is None else len(quantizer.coarse_centroids_)
        if quantizer.codebooks_.shape != shape or lists != self.n_lists:
            raise ValueError(
                f"quantizer has codebooks {quantizer.codebooks_.shape} and n_lists={lists}; the layer needs "
                f"{shape} and n_lists={self.n_lists}"
            )
        self.rotation.set(torch.from_numpy(quantizer.rotation_))
        self.centroids.set(quantizer.codebooks_)
        if quantizer.coarse_centroids_ is not None:
            self.coarse.copy_(torch.from_numpy(quantizer.coarse_centroids_))
        self.phases.finish()
        return self

    def descend(self, rows: Tensor, targets: Tensor, forms: RowForms) -> tuple[Tensor, float]:
        """Better codes and codebooks under a loss's own curvature: one round of `quantization.curvature`.

        `rows` (n, d) are quantized vectors as this method or the layer returned them, `targets` (n, d) the vectors of
        least loss, `forms` the loss's curvature there. Returns the next quantized vectors, which `codes` encodes
        exactly, and the loss minus that of the targets, before the codebook update. ValueError before the start or with
        inverted lists.
        """
        if self.n_lists:
            raise ValueError(f"descend needs a layer without inverted lists; this one has n_lists={self.n_lists}")
        codes, R = self.codes(rows), self.rotation_matrix.cpu().numpy()
        turned = np.ascontiguousarray(targets.detach().cpu().numpy() @ R, np.float32)
        del targets  # as large as the table of rows, and so is what is decoded below
        found = curvature.descend(turned, curvature.rotated(forms, R), codes, self.codebooks.detach().cpu().numpy())
        del turned
        with torch.no_grad():
            self.codebooks.copy_(torch.from_numpy(found.codebooks))
        return torch.from_numpy(decode(found.codes, found.codebooks) @ R.T), found.value

    def can_descend(self) -> bool:
        """Whether `descend` works: not with inverted lists."""
        return not self.n_lists

    @property
    def phase(self) -> str:
        """ "pass", "collect" or "train"."""
        return ("pass", "collect", "train")[self.phases.now]

    @property
    def codebooks(self) -> Tensor:
        """C (M, K, d/M), in the rotated space."""
        return self.centroids.codebooks

    @property
    def rotation_matrix(self) -> Tensor:
        """The current R (d, d), without a graph."""
        return self.rotation().detach()

    def rotation_parameters(self) -> list[nn.Parameter]:
        """Parameters for `GivensDescent`; empty unless `rotation` is one of "givens-..."."""
        return [self.rotation.base] if self.kind in BY_GRADIENT else []

    def other_parameters(self) -> list[nn.Parameter]:
        """All other trainable parameters, for Adam or the towers' optimizer."""
        own = {id(p) for p in self.rotation_parameters()}
        return [p for p in self.parameters() if p.requires_grad and id(p) not in own]

    def rotation_optimizer(self, lr: float | None = None) -> torch.optim.Optimizer | None:
        """`GivensDescent` on R, `lr` in place of `rotation_lr`; None if R needs no optimizer."""
        return self.rotation.optimizer(self.rotation_lr if lr is None else lr, self.rotation_every)

    # ---- using -----------------------------------------------------------------------------------------------------

    def to_quantizer(self) -> ProductQuantizer:
        """The fitted `ProductQuantizer`, for `nk.Index.build(items, layer.to_quantizer(), ids)`; ValueError before the
        start, or if the rotation is no longer orthogonal."""
        if self.phase != "train":
            raise ValueError(
                f"the layer has no centroids yet (phase {self.phase!r}, {len(self.phases.buffer):,} collected); "
                f"train it on {counted(self.phases.wanted, 'vector')} after {self.phases.warmup_steps} steps, or call "
                "layer.start(X)"
            )
        check_rotation(self.rotation_matrix)
        coarse = self.coarse.cpu().numpy().copy() if self.n_lists else None
        return ProductQuantizer.from_arrays(
            self.codebooks.detach().cpu().numpy().copy(), self.rotation_matrix.cpu().numpy().copy(), coarse
        )

    def codes(self, x: ArrayLike) -> np.ndarray:
        """Codes (n, M) of vectors x (n, d), as an index and FAISS hold them; ValueError before the start."""
        return self.to_quantizer().encode(x)

    # ---- inner parts -----------------------------------------------------------------------------------------------

    def _collect(self, rows: Tensor) -> None:
        """Count a step, keep its rows, start when there are enough; in data-parallel training rank 0 learns for all."""
        together = several()
        if not self.phases.take(gathered(rows) if together else rows):
            return
        if not together or is_first():
            self.start()
        if together:
            learned = [*self.rotation.parameters(), *self.centroids.state_dict().values(), self.coarse]
            take_from_first(learned, rows.device)
            self.phases.finish()
        self.phases.due = 2 * self.phases.steps

    def _tied(self, x: Tensor) -> Tensor:
        """x; in data-parallel training with every parameter in its graph, since DDP waits for a gradient of each."""
        if not (self.training and torch.is_grad_enabled() and several()):
            return x
        zero = sum((p.sum() * 0 for p in self.parameters() if p.requires_grad), x.new_zeros(()))
        return x + zero.to(x.dtype)

    def _evaluated(self, x: Tensor) -> tuple[Tensor, Tensor]:
        quantizer = self.to_quantizer()
        rows = x.detach().float().cpu().numpy()
        T = torch.from_numpy(quantizer.decode(quantizer.encode(rows))).to(x.device)
        return T.to(x.dtype), (x.detach().float() - T).square().sum() / max(len(x), 1)

    def _lists(self, rows: Tensor) -> Tensor:
        if not on_host(rows):
            return nearest(rows.detach(), self.coarse[None])[:, 0]
        return torch.from_numpy(CoarseQuantizer(self.coarse.cpu().numpy()).assign(rows.detach().numpy()))

    def _check(self, x: Tensor) -> None:
        if not (isinstance(x, Tensor) and x.is_floating_point()):
            kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
            raise TypeError(f"x is of type {kind}; pass torch.as_tensor(x, dtype=torch.float32)")
        if x.ndim != 2 or x.shape[1] != self.d:
            raise ValueError(f"x has shape {tuple(x.shape)}; the layer needs (b, {self.d}), as of the item tower")
        if not on_host(x) and self.phase == "train":  # a check on a device synchronizes
            self._batches += 1
            if self._batches % CHECK_EVERY != 1:
                return
        if not bool(torch.isfinite(x.detach().sum())):
            check_finite(x.detach().float().cpu().numpy(), "x")

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "IndexingLayer":
        """Follow the module around it to another device, but keep every type: averages and FAISS need it."""

        def moved(own: Tensor) -> Tensor:
            new = fn(own)
            return new if new.dtype == own.dtype else own.to(new.device)

        return super()._apply(moved, recurse)


def optimizers(
    layer: IndexingLayer, parameters: nn.Module | Iterable[Tensor], lr: float = 1e-3, rotation_lr: float | None = None
) -> list[torch.optim.Optimizer]:
    """Adam on the towers' `parameters` and the layer's other ones, and the rotation's optimizer, if it has one.

    Step all of them after `backward`. If a single optimizer is needed, as in Lightning, type
    `nk.orthogonal.MixedOptimizer(*optimizers(layer, parameters))`.

    Parameters
    ----------
    layer: an `IndexingLayer`.
    parameters: the towers' module, which may hold the layer, or their parameters.
    lr: Adam's learning rate.
    rotation_lr: that of the rotation, None for the layer's.

    Returns
    -------
    optimizers: [Adam, GivensDescent], or [Adam].

    Examples
    --------
    >>> import torch
    >>> layer, tower = nk.quantization.IndexingLayer(8, 2, 4), torch.nn.Linear(4, 8)
    >>> [type(one).__name__ for one in nk.quantization.optimizers(layer, tower.parameters())]
    ['Adam', 'GivensDescent']
    """
    if isinstance(parameters, nn.Module):
        parameters = [one for one in parameters.parameters() if one not in {*layer.parameters()}]
    adam = torch.optim.Adam([*parameters, *layer.other_parameters()], lr=lr)
    turning = layer.rotation_optimizer(rotation_lr)
    return [adam] if turning is None else [adam, turning]


def check_rotation(R: Tensor) -> None:
    """ValueError, with what to type, if R (d, d) is no longer a rotation."""
    if not torch.isfinite(R).all() or not is_orthogonal(R):
        way = "train with optimizers(layer, parameters), or give another optimizer layer.other_parameters() alone"
        error = f"||R^T R - I||_F / sqrt(d) is {orthogonality_error(R):.3g}"
        raise ValueError(f"the layer's rotation R is no rotation any more: {error}; {way}")
