"""Figures; each function draws on the axes it is given, or on new ones."""

from nearkin._lazy import lazily
from nearkin.plots.figures import plot_against_bytes as plot_against_bytes
from nearkin.plots.figures import plot_convergence as plot_convergence
from nearkin.plots.figures import plot_map as plot_map
from nearkin.plots.style import new_axes as new_axes
from nearkin.plots.style import to_svg as to_svg

lazily(__name__, __file__)
