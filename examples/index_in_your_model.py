"""How do I train the index inside my own PyTorch model, and give it to FAISS?

python examples/index_in_your_model.py
"""

import faiss
import torch

import nearkin as nk
from nearkin.quantization import IndexingLayer, optimizers

STEPS = 300
torch.manual_seed(0)
users, items = torch.randn(500, 12), torch.randn(800, 12)
liked = (users @ items.T).topk(5).indices  # the pairs to learn from: (500, 5)


def main() -> None:
    left, right = torch.nn.Linear(12, 32), torch.nn.Linear(12, 32)
    layer = IndexingLayer(32, n_subspaces=8, n_centroids=64, warmup_steps=50, buffer_size=2000)
    moving = optimizers(layer, [*left.parameters(), *right.parameters()], lr=1e-2)
    for step in range(STEPS):
        i = torch.randint(500, (256,))
        j = liked[i, torch.randint(5, (256,))]
        quantized, distortion = layer(right(items[j]))
        loss = torch.nn.functional.cross_entropy(left(users[i]) @ quantized.T, torch.arange(256)) + distortion
        for optimizer in moving:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in moving:
            optimizer.step()
        if step % 60 == 59:
            print(f"step {step + 1}: {layer.phase}, loss {loss.item():.3f}, distortion {distortion.item():.3f}")
    with torch.no_grad():
        # an ordinary FAISS index of 8 bytes an item
        index: faiss.Index = nk.Index.build(right(items), layer.eval().to_quantizer(), metric="ip").faiss_index
        _, found = index.search(left(users).numpy(), 20)
    print(f"5 liked items among the first 20 of 800: {(found[:, :, None] == liked.numpy()[:, None]).sum() / 2500:.0%}")


if __name__ == "__main__":
    main()
