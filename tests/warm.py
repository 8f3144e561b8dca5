"""Imported by the server of programs: numba's tables of types, which each fork would else fill for a second."""

from numba.core.registry import cpu_target

cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
