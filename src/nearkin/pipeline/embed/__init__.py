"""`nearkin embed`: signals of similarity to vectors, by towers or by ordinal embedding."""

from nearkin.pipeline.embed.comparisons import embed_comparisons as embed_comparisons
from nearkin.pipeline.embed.embed import embed_signals as embed_signals
from nearkin.pipeline.embed.interactions import embed_interactions as embed_interactions
