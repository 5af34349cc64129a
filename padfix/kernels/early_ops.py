"""Operators as they were before opset 7, and other forms that onnx.reference has lost.

Each is small and written from the operator's change log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_grid_sample import GridSample
from onnx.reference.ops.op_rnn import RNN_7
from onnx.reference.ops.op_roi_align import RoiAlign

from padfix.kernels.domain_alias import all_nodes_of
from padfix.kernels.quantized_ops import EarlyDequantizeLinear
from padfix.kernels.windows import Array


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


class _Binary(_Early):
    """Add-1 and its kind: ``broadcast`` and ``axis`` say how the second input meets the first."""

    def _run(self, A: Array, B: Array, **attributes: Any) -> tuple[Array]:
        other = aligned(A, B, attributes.get("broadcast", 0), attributes.get("axis"))
        return (np.asarray(_BINARY[self.onnx_node.op_type](A, other)),)


class _Cast(_Early):
    """Cast-1, whose type is a name."""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        to = TensorProto.DataType.Value(attributes["to"])
        return (x.astype(helper.tensor_dtype_to_np_dtype(to)),)


class _Clip(_Early):
    """Clip-1."""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        return (np.clip(x, attributes.get("min", -np.inf), attributes.get("max", np.inf)).astype(x.dtype),)


class _Concat(_Early):
    """Concat-1, whose axis is 1 unless it is given."""

    def _run(self, *inputs: Array, **attributes: Any) -> tuple[Array]:
        return (np.concatenate(inputs, axis=attributes.get("axis", 1)),)


class _Dropout(_Early):
    """Dropout-1 and -6 at inference; what they give in training is random."""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array, ...]:
        wanted = [name for name in self.onnx_node.output if name]
        if not attributes.get("is_test", 0) and attributes.get("ratio", 0.5) != 0:
            raise NotImplementedError("Dropout without is_test gives random numbers.")
        if len(wanted) > 1:
            raise NotImplementedError("Dropout gives no mask at inference.")
        return (x,)


class _Gemm(_Early):
    """Gemm-1 and -6, whose third input is broadcast on request only."""

    def _run(self, A: Array, B: Array, C: Array, **attributes: Any) -> tuple[Array]:
        first = A.T if attributes.get("transA", 0) else A
        second = B.T if attributes.get("transB", 0) else B
        product = attributes.get("alpha", 1.0) * (first.astype(np.float64) @ second.astype(np.float64))
        added = aligned(product, C, attributes.get("broadcast", 0), None) if C.ndim <= 1 else C
        if C.ndim > 1 and C.shape != product.shape and not attributes.get("broadcast", 0):
            raise ValueError(f"C is {list(C.shape)}, the product {list(product.shape)}, and broadcast is 0.")
        return ((product + attributes.get("beta", 1.0) * added).astype(A.dtype),)


class _GridSample(GridSample):
    """GridSample-16, whose modes have other names."""

    op_domain = ""

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        mode = attributes.get("mode") or "bilinear"
        attributes["mode"] = mode.removeprefix("bi")
        return super()._run(*inputs, **attributes)  # type: ignore[no-untyped-call]


class _PRelu(_Early):
    """PRelu-1 and -6: one slope for all, or one a channel."""

    def _run(self, x: Array, slope: Array, **attributes: Any) -> tuple[Array]:
        factor = slope.reshape(()) if slope.size == 1 else slope.reshape(-1, *[1] * (x.ndim - 2))
        return (np.where(x < 0, x * factor, x).astype(x.dtype),)


class _Reshape(_Early):
    """Reshape-1, whose shape is an attribute; 0 keeps an axis."""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        shape = [x.shape[axis] if size == 0 else size for axis, size in enumerate(attributes.get("shape", []))]
        return (x.reshape(shape),)


class _RNN(RNN_7):
    """RNN-1, which computes what RNN-7 does."""

    op_domain = ""


class _RoiAlign(RoiAlign):
    """RoiAlign-10, whose positions are not shifted by half a pixel."""

    op_domain = ""

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        attributes["coordinate_transformation_mode"] = "output_half_pixel"
        return super()._run(*inputs, **attributes)  # type: ignore[no-untyped-call]


class _Selu(_Early):
    """Selu-1, whose constants had fewer digits."""

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        alpha, gamma = attributes.get("alpha", 1.6732), attributes.get("gamma", 1.0507)
        return (np.where(x > 0, gamma * x, gamma * (alpha * np.exp(x) - alpha)).astype(x.dtype),)


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


class _Tile(_Early):
    """Tile-1, which repeats along one axis."""

    def _run(self, x: Array, tiles: Array, axis: Array, **attributes: Any) -> tuple[Array]:
        repeats = [1] * x.ndim
        repeats[int(axis.ravel()[0])] = int(tiles.ravel()[0])
        return (np.tile(x, repeats),)


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


EARLY_OPS: dict[str, tuple[tuple[int, type[OpRun]], ...]] = {
    **dict.fromkeys(_BINARY, ((7, _Binary),)),
    "Cast": ((6, _Cast),),
    "Clip": ((6, _Clip),),
    "Concat": ((4, _Concat),),
    "DequantizeLinear": ((19, EarlyDequantizeLinear),),
    "Dropout": ((7, _Dropout),),
    "Gemm": ((7, _Gemm),),
    "GridSample": ((20, _GridSample),),
    "PRelu": ((7, _PRelu),),
    "RNN": ((7, _RNN),),
    "Reshape": ((5, _Reshape),),
    "RoiAlign": ((16, _RoiAlign),),
    "Selu": ((6, _Selu),),
    "Split": ((2, _Split),),
    "Tile": ((6, _Tile),),
}
"""By operator: (the first version that means something else, what it was before)."""


def early_form(node: NodeProto, opset: int) -> type[OpRun] | None:
    """Return the implementation of a node of ONNX's own domain whose version onnx.reference lacks, or None."""
    return next((form for before, form in EARLY_OPS.get(node.op_type, ()) if opset < before), None)


_SUPERSEDED = frozenset({"consumed_inputs", "output_sequence"})


def without_superseded(model: ModelProto) -> ModelProto:
    """Return ``model`` itself, or a copy without attributes of opset 1 to 6 that never changed a number.

    They say that an operator may overwrite its input, and whether a recurrent one has its first output.
    """
    if not any(each.name in _SUPERSEDED for node in all_nodes_of(model) for each in node.attribute):
        return model
    copy = ModelProto()
    copy.CopyFrom(model)
    for node in all_nodes_of(copy):
        kept = [each for each in node.attribute if each.name not in _SUPERSEDED or node.domain not in ("", "ai.onnx")]
        if len(kept) < len(node.attribute):
            del node.attribute[:]
            node.attribute.extend(kept)
    return copy
