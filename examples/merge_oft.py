"""How do I merge what PEFT's OFT has trained, with exact rotations?

python examples/merge_oft.py
"""

import torch
from torch import Tensor

import nearkin as nk

D, BLOCK = 256, 32
torch.manual_seed(0)
layer = torch.nn.Linear(D, D).requires_grad_(False)  # of the base model
# as safetensors.torch.load_file("adapter_model.safetensors") returns it
adapter = {"q_proj.oft_R.weight": 0.1 * torch.randn(D // BLOCK, BLOCK * (BLOCK - 1) // 2)}


def cut_series(entries: Tensor) -> Tensor:
    """PEFT's default, use_cayley_neumann=True: I + 2 Q + 2 Q^2 + 2 Q^3 + Q^4 for each block (r, s, s)."""
    Q = torch.zeros(len(entries), BLOCK, BLOCK)
    Q[:, *torch.triu_indices(BLOCK, BLOCK, 1)] = entries
    Q = Q - Q.mT
    return torch.eye(BLOCK) + 2 * Q + 2 * Q @ Q + 2 * Q @ Q @ Q + Q @ Q @ Q @ Q


@torch.no_grad()
def main() -> None:
    rotation = nk.orthogonal.BlockRotation(D, BLOCK)
    rotation.load_state_dict({"weight": adapter["q_proj.oft_R.weight"]})
    for name, R in (("cut series", cut_series(rotation.weight)), ("exact", rotation.rotations())):
        error = torch.linalg.matrix_norm(R.mT @ R - torch.eye(BLOCK)).max() / BLOCK**0.5
        print(f"{name}: ||R'R - I|| / sqrt(s) is {error:.0e}")
    x = torch.randn(8, D)
    before = layer(rotation(x))
    rotation.merge(layer)
    print(f"the merged layer differs by {(layer(x) - before).abs().max():.0e}")


if __name__ == "__main__":
    main()
