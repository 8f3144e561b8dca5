"""HDF5 and safetensors: named arrays in one file, memory-mapped (extra `hdf5`)."""

import json
import math
from importlib import import_module

import numpy as np

from nearkin._fields import Extra
from nearkin.data.files import Locator
from nearkin.data.formats.binary import choose_name
from nearkin.data.formats.file_rows import BFLOAT16, FileRows, check_layout, mapped_rows

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": BFLOAT16, "I32": "<i4", "I8": "i1", "U8": "u1"}


def open_hdf5(where: Locator) -> FileRows:
    """Rows of a data set of an HDF5 file, `file.h5:name` if it has several."""
    try:
        h5py: Extra = import_module("h5py")  # an optional peer
    except ImportError as error:
        raise ImportError("this format needs h5py, which is not installed: pip install 'nearkin[hdf5]'") from error
    with h5py.File(where.path, "r") as file:
        key = choose_name(where, [name for name, found in file.items() if isinstance(found, h5py.Dataset)])
        shape, dtype = check_layout(str(where), file[key].shape, file[key].dtype), file[key].dtype
    return mapped_rows(shape, dtype, lambda: h5py.File(where.path, "r")[key])


def open_safetensors(where: Locator) -> FileRows:
    """Rows of a tensor of a .safetensors file, `file.safetensors:name` if it has several."""
    size = where.path.stat().st_size
    with where.path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > size - 8:
            raise ValueError(f"{where} is truncated: it has {size} bytes, its header alone {length}; copy it again")
        tensors = json.loads(file.read(length))
    tensors.pop("__metadata__", None)
    tensor = tensors[choose_name(where, list(tensors))]
    if tensor["dtype"] not in _TYPES:
        raise ValueError(f"{where} has the type {tensor['dtype']}; it must be one of {', '.join(_TYPES)}")
    dtype = np.dtype(_TYPES[tensor["dtype"]])
    shape = check_layout(str(where), tuple(tensor["shape"]), dtype)
    first, stop = tensor["data_offsets"]
    if first < 0 or stop - first != math.prod(shape) * dtype.itemsize or 8 + length + stop > size:
        raise ValueError(f"{where} is damaged: bytes {first} to {stop} cannot hold {shape} of {dtype}; write it again")
    return mapped_rows(shape, dtype, lambda: np.memmap(where.path, dtype, "r", 8 + length + first, shape))
