"""Two towers: interactions to embeddings of both sides; `nearkin.embedding` has the names."""

from nearkin._lazy import lazily

lazily(__name__, __file__)
