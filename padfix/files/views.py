"""Large payloads as arrays: mapped from the file that holds them, so that no more is read than somebody looks at."""

from __future__ import annotations

import math
import mmap
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from padfix.errors import PadfixError
from padfix.files import wire_format
from padfix.files.external_data import external_location
from padfix.files.model import Model
from padfix.files.payloads import has_mark, load_payload, marked_file, open_file, open_payload, read_mark
from padfix.files.tensors import payload_size

MOST_ELEMENTS = 1 << 24
"""Larger tensors are not looked into: what takes them for numbers that somebody wrote would run out of memory."""


def array_of(model: Model, tensor: TensorProto) -> np.ndarray | None:
    """Return the elements of a tensor that is not in the graph itself, not to be written to.

    None where they can't be read: they are in a store, or the file is gone or was changed. Half bytes are loaded.
    """
    size, count, dtype = payload_size(tensor), math.prod(tensor.dims), _dtype(tensor)
    if not size or dtype is None or count > MOST_ELEMENTS:
        return None
    try:
        if size != dtype.itemsize * count:
            return loaded_array(model, tensor)
        return np.frombuffer(_mapped(model, tensor), dtype).reshape(tuple(tensor.dims))
    except (PadfixError, OSError, ValueError):
        return None


def loaded_array(model: Model, tensor: TensorProto) -> np.ndarray:
    """Return the elements of a tensor, wherever they are, in memory.

    Raises:
        PadfixError: As :func:`padfix.files.payloads.load_payload`.
        ValueError, TypeError, KeyError: They are not what the tensor's shape and type say.
    """
    payload = load_payload(model, tensor)
    return numpy_helper.to_array(TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=payload))


def _dtype(tensor: TensorProto) -> np.dtype | None:
    try:
        found = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
    except KeyError:
        return None
    return None if found.hasobject else found.newbyteorder("<")


def _mapped(model: Model, tensor: TensorProto) -> bytes | memoryview:
    """Return the payload's bytes.

    Raises:
        PadfixError: They are not there, or not as they were when the model was read.
    """
    if not has_mark(tensor):
        path, offset, length = external_location(model.folder or Path(), tensor, model.path)
        with open_file(path) as descriptor:
            return _span(descriptor, offset, length)
    mark = read_mark(tensor)
    if mark.field not in wire_format.FIXED_WIDTH_PAYLOADS:
        return load_payload(model, tensor)
    with open_payload(marked_file(model), mark) as descriptor:
        return _span(descriptor, mark.offset, mark.length)


def _span(descriptor: int, offset: int, length: int) -> memoryview:
    start = offset - offset % mmap.ALLOCATIONGRANULARITY
    mapped = mmap.mmap(descriptor, offset + length - start, access=mmap.ACCESS_READ, offset=start)
    return memoryview(mapped)[offset - start :]
