"""Averages of models over training that stay on the manifold."""

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, get_swa_multi_avg_fn

from nearkin.linalg.orthonormal import nearest_orthogonal
from nearkin.orthogonal import RiemannianDescent, is_orthogonal, orthogonal_, orthogonal_average
from tests.covering import each


@each("dtype", [torch.float64, torch.float32, torch.bfloat16])
@each("decay", [None, 0.8])
def test_an_average_stays_on_the_manifold_and_the_rest_is_torchs(decay: float | None, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 5, 2), nn.Linear(7, 4), nn.Linear(3, 3), nn.BatchNorm1d(3)).to(dtype)
    orthogonal_(net[0], random_state=0)
    orthogonal_(net[1], random_state=0)
    average = AveragedModel(net, multi_avg_fn=orthogonal_average(decay), use_buffers=decay is not None)
    torchs = get_swa_multi_avg_fn() if decay is None else get_ema_multi_avg_fn(decay)
    plain = AveragedModel(net, multi_avg_fn=torchs, use_buffers=decay is not None)
    optimizer = RiemannianDescent(
        [{"params": [net[0].weight], "layout": "convolution"}, {"params": [net[1].weight]}], 0.3
    )
    rest = torch.optim.SGD(net[2:].parameters(), 0.3)
    for step in range(4):
        for p in net.parameters():
            p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(step)).to(dtype)
        optimizer.step()
        rest.step()
        for model in (average, plain):
            model.update_parameters(net)
        if step == 1:  # the mean of two points, put back once
            wanted = nearest_orthogonal(plain.module[1].weight.detach().double()).to(dtype)
            tolerance = {"rtol": 0, "atol": 10 * torch.finfo(dtype).eps}
            torch.testing.assert_close(average.module[1].weight.detach(), wanted, **tolerance)
        assert is_orthogonal(
            average.module[0].weight.flatten(1), {torch.float64: 1e-12, torch.float32: 1e-6}.get(dtype)
        )
        assert is_orthogonal(average.module[1].weight, {torch.float64: 1e-12, torch.float32: 1e-6}.get(dtype))
    assert not is_orthogonal(plain.module[1].weight)
    names = [name for name, value in plain.state_dict().items() if not torch.equal(value, average.state_dict()[name])]
    assert names == ["module.0.weight", "module.1.weight"]
    with pytest.raises(ValueError, match=r"2\.0"):
        orthogonal_average(2.0)
