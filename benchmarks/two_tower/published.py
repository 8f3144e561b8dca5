"""What papers print for gowalla by the published protocol: LightGCN's split, all items ranked, 217,242 test pairs."""

from typing import NamedTuple


class Paper(NamedTuple):
    method: str
    source: str
    dimensions: str
    recall: float
    ndcg: float


PUBLISHED = {
    "gowalla": (
        Paper("SimpleX", "Mao et al. 2021a", "64", 0.1872, 0.1557),
        Paper("UltraGCN", "Mao et al. 2021b", "64", 0.1862, 0.1580),
        Paper("GF-CF", "Shen et al. 2021", "-", 0.1849, 0.1518),
        Paper("MF with a cosine contrastive loss", "Mao et al. 2021a", "64", 0.1837, 0.1493),
        Paper("LightGCN", "He et al. 2020", "64", 0.1830, 0.1554),
        Paper("EASE", "Mao et al. 2021a", "-", 0.1765, 0.1467),
        Paper("ENMF", "Mao et al. 2021a", "64", 0.1523, 0.1315),
    )
}
