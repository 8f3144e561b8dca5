"""Codes to answers, on FAISS."""

from nearkin.index.index import Index as Index
