"""File formats: arrays, typed tables, and the vectors in them."""

from nearkin._lazy import lazily

lazily(__name__, __file__)
