"""Ask the processor for a row of a matrix that is needed soon: the hint that compilers do not give for X[indices[e]].

Without it a walk over observed pairs waits for memory once a pair as soon as the matrix is larger than the cache: at
64,000 rows of 64 float32 a pair took three times as long as at 4,000, with it one and a half times.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

AHEAD = 12  # pairs between the hint and the use; 8 to 16 were alike
FAR_AHEAD = 64  # numbers, which are used up faster than rows
_LINE = 64  # bytes that come at once
_CACHE = 1 << 19  # bytes that stay in a core's own cache anyway


@njit(inline="always")
def is_far(X):
    """Whether rows of X are likely to come from beyond a core's own cache."""
    return X.size * X.itemsize > _CACHE


@njit(inline="always")
def prefetch_row(X, i):
    """Hint that X[i] is read soon. X is (n, k) in row order, 0 <= i < n."""
    for c in range(0, X.shape[1], _LINE // X.itemsize):
        prefetch(X, (np.intp(i), np.intp(c)))  # pyright: ignore[reportCallIssue]


@intrinsic
def prefetch(typing_context, array, place):
    """LLVM's prefetch of the cache line of array[place], a tuple of intp: for reading, to be kept in all levels."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        position = cgutils.unpack_tuple(builder, arguments[1])
        entry = cgutils.get_item_pointer(
            context, builder, kind, make_array(kind)(context, builder, arguments[0]), position
        )
        pointer, number = cgutils.voidptr_t, ir.IntType(32)
        hint = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        )
        builder.call(hint, [builder.bitcast(entry, pointer), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.none(array, place), generate
