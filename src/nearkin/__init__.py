"""nearkin: learn what is near, store it small, find it fast.

Signals of similarity (interactions or comparisons) become vectors; vectors become codes; codes become a searchable
index. Names are loaded on first use, so `import nearkin` is cheap.
"""

import os
import sys
from typing import TYPE_CHECKING

from nearkin._lazy import lazily

__version__ = "0.1.0"


# On macOS the wheels of PyTorch, FAISS and scikit-learn each bring an OpenMP. Two of them with several threads abort or
# crash, in either order of import (pytorch issue 149201, faiss-wheels issue 73). Users report that one thread works.
if sys.platform == "darwin" and "OMP_NUM_THREADS" not in os.environ:
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.setdefault("KMP_DUPLICATE_LIB_OK", "TRUE")

# Threads that wait for each other spin, by default for milliseconds, and on a busy machine they take CPU time from
# those they wait for. Two towers on ml100k, with two other programs on two cores (2026-11): 20 s by default, 2.5 s with
# these settings; on a quiet machine 1.3 and 1.1 s. The libraries read them when they are loaded.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "10")  # 2^10 cycles

if TYPE_CHECKING:
    from nearkin import data as data
    from nearkin import embedding as embedding
    from nearkin import export as export
    from nearkin import hashing as hashing
    from nearkin import integrations as integrations
    from nearkin import jobs as jobs
    from nearkin import linalg as linalg
    from nearkin import metrics as metrics
    from nearkin import orthogonal as orthogonal
    from nearkin import plots as plots
    from nearkin import quantization as quantization
    from nearkin import report as report
    from nearkin import solvers as solvers
    from nearkin import web as web
    from nearkin._distributed import join_processes as join_processes
    from nearkin._versions import show_versions as show_versions
    from nearkin.data.comparisons import read_comparisons as read_comparisons
    from nearkin.data.interactions import read_interactions as read_interactions
    from nearkin.data.vectors import read_vectors as read_vectors
    from nearkin.embedding.bridge import Bridge as Bridge
    from nearkin.embedding.ordinal.estimator import OrdinalEmbedding as OrdinalEmbedding
    from nearkin.embedding.two_tower.estimator import TwoTower as TwoTower
    from nearkin.hashing.itq import ITQ as ITQ
    from nearkin.hashing.linear import PCAHash as PCAHash
    from nearkin.hashing.linear import RandomHyperplanes as RandomHyperplanes
    from nearkin.hashing.linear import Signs as Signs
    from nearkin.hashing.scq import OgE as OgE
    from nearkin.hashing.scq import OnE as OnE
    from nearkin.index import Index as Index
    from nearkin.quantization.engine_rotation import Rotation as Rotation
    from nearkin.quantization.product import ProductQuantizer as ProductQuantizer
    from nearkin.quantization.semantic_ids import SemanticIds as SemanticIds
    from nearkin.records import Comparisons as Comparisons
    from nearkin.records import Interactions as Interactions

lazily(__name__, __file__, "__version__")
