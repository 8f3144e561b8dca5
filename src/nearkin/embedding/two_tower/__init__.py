"""Two towers: interactions to embeddings of both sides; `nearkin.embedding` has the names."""
