"""Codes to answers, on FAISS."""

from nearkin._lazy import lazily
from nearkin.index.index import Index as Index

lazily(__name__, __file__)
