"""Vectors from comparisons (SVRG-SBB); `nearkin.embedding` has the names."""
