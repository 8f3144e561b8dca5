"""How do I train a whole network, orthogonal matrices and all the rest, with ONE optimizer, a scheduler and an EMA?

python examples/one_optimizer.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.swa_utils import AveragedModel

import nearkin as nk

STEPS = 300
digits = load_digits()
images, labels = torch.from_numpy(digits.data).float() / 8 - 1, torch.from_numpy(digits.target)


def main() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
    for seed, layer in enumerate((net[0], net[2])):
        nk.orthogonal.orthogonal_(
            layer, "weight", random_state=seed
        )  # these two stay orthonormal, all the rest is AdamW's
    optimizer = nk.orthogonal.orthogonal_optimizer(
        net, lr=0.05, momentum=0.9, others=lambda rest: torch.optim.AdamW(rest, lr=3e-3)
    )
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=[0.05, 3e-3], total_steps=STEPS)
    average = AveragedModel(net, multi_avg_fn=nk.orthogonal.orthogonal_average(0.98))
    for step in range(STEPS):
        rows = torch.randint(1200, (64,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        scheduler.step()
        average.update_parameters(net)
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.3f}, learning rates {scheduler.get_last_lr()}")
    for name, model in (("network", net), ("average", average.module)):
        correct = (model(images[1200:]).argmax(1) == labels[1200:]).float().mean()
        error = torch.linalg.matrix_norm(model[2].weight @ model[2].weight.T - torch.eye(64))
        print(f"{name}: test accuracy {correct:.3f}, ||W W^T - I|| of the second layer {error:.1e}")


if __name__ == "__main__":
    main()
