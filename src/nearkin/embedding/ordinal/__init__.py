"""Vectors from comparisons (SVRG-SBB); `nearkin.embedding` has the names."""

from nearkin._lazy import lazily

lazily(__name__, __file__)
