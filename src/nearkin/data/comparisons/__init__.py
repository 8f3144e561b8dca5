"""Comparisons: from files, arrays and names; the forms that answers come in; votes, splits, and planted ones."""

from nearkin._lazy import lazily
from nearkin.data.comparisons.forms import as_comparisons as as_comparisons
from nearkin.data.comparisons.forms import comparisons_from_array as comparisons_from_array
from nearkin.data.comparisons.forms import comparisons_from_names as comparisons_from_names
from nearkin.data.comparisons.reading import read_comparisons as read_comparisons

lazily(__name__, __file__)
