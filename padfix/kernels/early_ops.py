"""Operators as they were before opset 7, and other forms that onnx.reference has lost.

Each is small and written from the operator's change log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_grid_sample import GridSample
from onnx.reference.ops.op_roi_align import RoiAlign

from padfix.kernels.quantized import dequantize_linear
from padfix.kernels.windows import Array
from padfix.kernels.wrapping import operator


class _Early(OpRun):
    op_domain = ""

    def _load_attributes(self) -> None:
        self._schema = None  # else absent attributes get the newest version's defaults, or are asked for
        super()._load_attributes()


def aligned(first: Array, second: Array, broadcast: int, axis: int | None) -> Array:
    """Return ``second`` in a shape that NumPy broadcasts over ``first`` as Add and its kind did before opset 7.

    Without ``axis`` the last axes of both correspond; with it, those of ``second`` begin there.

    Raises:
        ValueError: The shapes differ and ``broadcast`` does not allow it, or they don't fit.
    """
    if not broadcast:
        if first.shape != second.shape:
            raise ValueError(f"Shapes {list(first.shape)} and {list(second.shape)} differ and broadcast is 0.")
        return second
    if second.size == 1 and second.ndim <= 1:
        return second.reshape(())
    start = first.ndim - second.ndim if axis is None else axis + (first.ndim if axis < 0 else 0)
    behind = first.ndim - start - second.ndim
    if start < 0 or behind < 0:
        raise ValueError(f"A shape {list(second.shape)} does not fit {list(first.shape)} from axis {axis}.")
    return second.reshape(*second.shape, *[1] * behind)


def _divide(first: Array, second: Array) -> Array:
    if first.dtype.kind in "iu":
        return np.asarray(np.trunc(first / second)).astype(first.dtype)
    return np.asarray(first / second)


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _divide,
    "Pow": lambda first, second: np.power(first, second).astype(first.dtype),
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "Less": np.less,
}


def _binary(
    combine: Callable[[Array, Array], Array], A: Array, B: Array, broadcast: int = 0, axis: Any = None
) -> Array:
    """Add-1 and its kind: ``broadcast`` and ``axis`` say how the second input meets the first."""
    return np.asarray(combine(A, aligned(A, B, broadcast, axis)))


def _cast(x: Array, to: str) -> Array:
    """Cast-1, whose type is a name."""
    return x.astype(helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(to)))


def _clip(x: Array, min: float = -np.inf, max: float = np.inf) -> Array:
    """Clip-1, whose bounds are attributes."""
    return np.clip(x, min, max).astype(x.dtype)


def _concat(*inputs: Array, axis: int = 1) -> Array:
    """Concat-1, whose axis is 1 unless it is given."""
    return np.concatenate(inputs, axis=axis)


class _Dropout(_Early):
    """Dropout-1 and -6 at inference; what they give in training is random."""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array, ...]:
        wanted = [name for name in self.onnx_node.output if name]
        if not attributes.get("is_test", 0) and attributes.get("ratio", 0.5) != 0:
            raise NotImplementedError("Dropout without is_test gives random numbers.")
        if len(wanted) > 1:
            raise NotImplementedError("Dropout gives no mask at inference.")
        return (x,)


def _gemm(
    A: Array,
    B: Array,
    C: Array,
    alpha: float = 1.0,
    beta: float = 1.0,
    broadcast: int = 0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    """Gemm-1 and -6, whose third input is broadcast on request only."""
    first, second = A.T if transA else A, B.T if transB else B
    product = alpha * (first.astype(np.float64) @ second.astype(np.float64))
    if C.ndim > 1 and C.shape != product.shape and not broadcast:
        raise ValueError(f"C is {list(C.shape)}, the product {list(product.shape)}, and broadcast is 0.")
    added = aligned(product, C, broadcast, None) if C.ndim <= 1 else C
    return np.asarray(product + beta * added).astype(A.dtype)


class _GridSample(GridSample):
    """GridSample-16, whose modes have other names."""

    op_domain = ""

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        mode = attributes.get("mode") or "bilinear"
        attributes["mode"] = mode.removeprefix("bi")
        return super()._run(*inputs, **attributes)  # type: ignore[no-untyped-call]


def _prelu(x: Array, slope: Array) -> Array:
    """PRelu-1 and -6: one slope for all, or one a channel."""
    factor = slope.reshape(()) if slope.size == 1 else slope.reshape(-1, *[1] * (x.ndim - 2))
    return np.where(x < 0, x * factor, x).astype(x.dtype)


def _reshape(x: Array, shape: Sequence[int] = ()) -> Array:
    """Reshape-1, whose shape is an attribute; 0 keeps an axis."""
    return x.reshape([x.shape[axis] if size == 0 else size for axis, size in enumerate(shape)])


class _RoiAlign(RoiAlign):
    """RoiAlign-10, whose positions are not shifted by half a pixel."""

    op_domain = ""

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        attributes["coordinate_transformation_mode"] = "output_half_pixel"
        return super()._run(*inputs, **attributes)  # type: ignore[no-untyped-call]


def _selu(x: Array, alpha: float = 1.6732, gamma: float = 1.0507) -> Array:
    """Selu-1, whose constants had fewer digits."""
    return np.where(x > 0, gamma * x, gamma * (alpha * np.exp(x) - alpha)).astype(x.dtype)


class _Squeeze(_Early):
    """Squeeze-1 and -11, whose axes are an attribute in any order; onnx.reference takes one away after another."""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        axes = attributes.get("axes")
        return (np.squeeze(x, axis=None if axes is None else tuple(axes)),)


class _Unsqueeze(_Early):
    """Unsqueeze-1 and -11, whose axes are an attribute, and of the result."""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        return (np.expand_dims(x, axis=tuple(attributes.get("axes") or ())),)


class _Split(_Early):
    """Split-1: equal pieces, or lengths by attribute or input."""

    def _run(self, x: Array, lengths: Array | None = None, **attributes: Any) -> tuple[Array, ...]:
        axis, count = attributes.get("axis", 0), len(self.onnx_node.output)
        pieces = attributes.get("split") if lengths is None else [int(each) for each in lengths.ravel()]
        if not pieces:
            pieces = [x.shape[axis] // count] * count
        if sum(pieces) != x.shape[axis] or len(pieces) != count:
            raise ValueError(f"Pieces {list(pieces)} don't make up an axis of {x.shape[axis]}.")
        return tuple(np.split(x, np.cumsum(pieces)[:-1], axis=axis))


def _tile(x: Array, tiles: Array, axis: Array) -> Array:
    """Tile-1, which repeats along one axis."""
    repeats = [1] * x.ndim
    repeats[int(axis.ravel()[0])] = int(tiles.ravel()[0])
    return np.tile(x, repeats)


class OneHot(OpRun):
    """OneHot of every version; before 11 a negative index means no element, since then it counts from the end."""

    op_domain = ""

    def _run(self, indices: Array, depth: Array, values: Array, axis: int | None = None) -> tuple[Array]:
        place, count = -1 if axis is None else axis, int(np.asarray(depth).ravel()[0])
        place += indices.ndim + 1 if place < 0 else 0
        whole = np.trunc(indices).astype(np.int64)
        if int(self.run_params["opsets"].get("", 1)) >= 11:
            whole = np.where((whole < 0) & (whole >= -count), whole + count, whole)
        classes = np.arange(count).reshape([-1 if number == place else 1 for number in range(indices.ndim + 1)])
        return (np.where(np.expand_dims(whole, place) == classes, values[1], values[0]).astype(values.dtype),)


_early = partial(operator, base=_Early)  # type: ignore[type-abstract]

EARLY_OPS: dict[str, tuple[int, type[OpRun]]] = {
    **{name: (7, _early(name, partial(_binary, combine), "broadcast", "axis")) for name, combine in _BINARY.items()},
    "Cast": (6, _early("Cast", _cast, "to")),
    "Clip": (6, _early("Clip", _clip, "min", "max")),
    "Concat": (4, _early("Concat", _concat, "axis")),
    "DequantizeLinear": (19, operator("DequantizeLinear", dequantize_linear, "axis")),
    "Dropout": (7, _Dropout),
    "Gemm": (7, _early("Gemm", _gemm, "alpha", "beta", "broadcast", "transA", "transB")),
    "GridSample": (20, _GridSample),
    "PRelu": (7, _early("PRelu", _prelu)),
    "Reshape": (5, _early("Reshape", _reshape, "shape")),
    "RoiAlign": (16, _RoiAlign),
    "Selu": (6, _early("Selu", _selu, "alpha", "gamma")),
    "Split": (2, _Split),
    "Squeeze": (13, _Squeeze),
    "Tile": (6, _early("Tile", _tile)),
    "Unsqueeze": (13, _Unsqueeze),
}
"""By operator: the first version that means something else, and what it was before."""


def early_form(node: NodeProto, opset: int) -> type[OpRun] | None:
    """Return the implementation of a node of ONNX's own domain whose version onnx.reference lacks, or None."""
    before, form = EARLY_OPS.get(node.op_type, (0, None))
    return form if opset < before else None
