"""Averages of networks over training (EMA, SWA) whose orthonormal matrices stay orthonormal."""

from collections.abc import Callable
from typing import TypeAlias, cast

from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn, get_swa_multi_avg_fn

from nearkin._check import check_real
from nearkin.orthogonal.diagnostics import layout_on_manifold
from nearkin.orthogonal.optimizer import as_tall, from_tall, whole, write_whole
from nearkin.orthogonal.parametrization import polar_by_products

Params: TypeAlias = tuple[Tensor, ...] | list[Tensor]  # as torch types them
Average: TypeAlias = Callable[[Params, Params, Tensor | int], None]


def orthogonal_average(decay: float | None = None) -> Average:
    """Return the `multi_avg_fn` of an `AveragedModel` that stays on the manifold.

    Parameters that are orthonormal in the model get the polar factor of their average after every update, the
    orthonormal matrix nearest to it; all others get torch's average. Each update is a few products for each matrix.

    Parameters
    ----------
    decay: of an exponential moving average, in [0, 1]; None for the mean of all models (SWA).

    Returns
    -------
    average: function for `torch.optim.swa_utils.AveragedModel(multi_avg_fn=...)`.

    Examples
    --------
    >>> import torch, nearkin as nk
    >>> layer = torch.nn.Linear(8, 8)
    >>> optimizer = nk.orthogonal.orthogonal_optimizer([nk.orthogonal.orthogonal_(layer)], lr=0.5)
    >>> averaged = torch.optim.swa_utils.AveragedModel(layer, multi_avg_fn=nk.orthogonal.orthogonal_average(0.9))
    >>> for _ in range(3):
    ...     layer(torch.ones(2, 8)).square()[:, 0].sum().backward()
    ...     _ = optimizer.step()
    ...     averaged.update_parameters(layer)
    >>> nk.orthogonal.is_orthogonal(averaged.module.weight, 1e-5)
    True
    """
    decay = None if decay is None else check_real(decay, "decay", low=0, high=1)
    plain = cast(Average, get_swa_multi_avg_fn() if decay is None else get_ema_multi_avg_fn(decay))

    def average(averaged: Params, current: Params, count: Tensor | int) -> None:
        plain(averaged, current, count)
        for mean, value in zip(averaged, current, strict=True):
            known = whole(value)
            fits = known.is_floating_point() and known.ndim > 1 and known.numel() > 0
            layout = layout_on_manifold(known) if fits else None
            if layout is not None and (X := polar_by_products(as_tall(whole(mean), layout))) is not None:
                write_whole(mean, from_tall(X, mean, layout))

    return average
