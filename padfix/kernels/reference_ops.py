"""The kernels as operators of onnx.reference, and an evaluator that uses them everywhere in a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_cum_sum import CumSum as _CumSum
from onnx.reference.ops.op_non_max_suppression import NonMaxSuppression as _NonMaxSuppression
from onnx.reference.ops.op_scatter_elements import ScatterElements
from onnx.reference.ops.op_unique import Unique as _Unique

from padfix.kernels.contrib_ops import CONTRIB_OPS
from padfix.kernels.conv import conv
from padfix.kernels.early_ops import OneHot, early_form
from padfix.kernels.loop import Loop
from padfix.kernels.normalization import (
    batch_normalization,
    batch_statistics,
    flatten_from,
    hardmax,
    local_response_normalization,
    log_softmax,
    lp_normalization,
    softmax,
    training_batch_normalization,
)
from padfix.kernels.padding import pad_tensor
from padfix.kernels.pool import average_pool, lp_pool, max_pool, max_pool_with_indices
from padfix.kernels.quantized import conv_integer, qlinear_conv
from padfix.kernels.recurrent import RECURRENT_OPS
from padfix.kernels.resample import legacy_resize, resize
from padfix.kernels.spectra import stft
from padfix.kernels.spelling import in_one_spelling
from padfix.kernels.transpose import conv_transpose
from padfix.kernels.windows import Array
from padfix.kernels.wrapping import CONVOLUTION, WINDOW, chosen, operator


def _opset(operator: OpRun) -> int:
    """Return the version of ONNX's own operators that the graph or function around a node imports."""
    return int(operator.run_params["opsets"].get("", 1))


class MaxPool(OpRun):
    """MaxPool of every version, with the optional output Indices."""

    op_domain = ""

    def _run(self, X: Array, **attributes: Any) -> tuple[Array, ...]:
        names = (*WINDOW, "ceil_mode")
        if len(self.onnx_node.output) > 1 and self.onnx_node.output[1]:
            return max_pool_with_indices(X, **chosen(attributes, *names, "storage_order"))
        return (max_pool(X, **chosen(attributes, *names)),)


class Upsample(OpRun):
    """Upsample-1 (height_scale, width_scale), -7 (attribute scales) and -9 (input scales)."""

    op_domain = ""

    def _run(self, X: Array, scales: Array | None = None, **attributes: Any) -> tuple[Array]:
        factors = [] if scales is None else [float(each) for each in np.asarray(scales).ravel()]
        if attributes.get("height_scale") is not None and attributes.get("width_scale") is not None:
            factors = [1.0, 1.0, float(attributes["height_scale"]), float(attributes["width_scale"])]
        if any(factor < 1 for factor in factors):
            raise ValueError(f"Upsample has scales below 1, which the operator does not allow: {factors}.")
        return (legacy_resize(X, factors, attributes.get("mode") or "nearest"),)


class Resize(OpRun):
    """Resize-10 (inputs X and scales, nothing else) and Resize-11 and later (roi is the second input)."""

    op_domain = ""

    def _run(self, X: Array, *inputs: Array | None, **attributes: Any) -> tuple[Array]:
        if _opset(self) < 11:
            if not inputs or inputs[0] is None:
                raise ValueError("Resize has neither scales nor sizes.")
            factors = [float(each) for each in np.asarray(inputs[0]).ravel()]
            return (legacy_resize(X, factors, attributes.get("mode") or "nearest"),)
        names = (
            "mode",
            "coordinate_transformation_mode",
            "nearest_mode",
            "cubic_coeff_a",
            "exclude_outside",
            "extrapolation_value",
            "antialias",
            "axes",
            "keep_aspect_ratio_policy",
        )
        return (resize(X, *inputs, **chosen(attributes, *names)),)


class Pad(OpRun):
    """Pad of every version: amounts and value by attribute (1 and 2) or by input (11 and later)."""

    op_domain = ""

    def _run(self, X: Array, *inputs: Array | None, **attributes: Any) -> tuple[Array]:
        pads, value, axes = (*inputs, None, None, None)[:3]
        amounts = attributes.get("pads") or attributes.get("paddings") if pads is None else pads.ravel().tolist()
        constant = attributes.get("value") if value is None else value.ravel()[0]
        return (
            pad_tensor(
                X,
                amounts or [],
                constant,
                None if axes is None else axes.ravel().tolist(),
                mode=attributes.get("mode") or "constant",
            ),
        )


class BatchNormalization(OpRun):
    """BatchNormalization from version 7: inference, and training mode, in which it lists more outputs than one.

    Before version 14 these are also the mean of the batch, and by what it divides.
    """

    op_domain = ""

    def _run(self, *inputs: Array, **attributes: Any) -> tuple[Array, ...]:
        version = _opset(self)
        outputs = [name for name in self.onnx_node.output if name]
        if version >= 14 and attributes.get("training_mode"):
            return training_batch_normalization(*inputs, **chosen(attributes, "epsilon", "momentum"))[: len(outputs)]
        if version in range(7, 14) and len(outputs) > 1 and attributes.get("spatial", 1):
            told = chosen(attributes, "epsilon", "momentum")
            trained = training_batch_normalization(*inputs, **told)
            return (*trained, *batch_statistics(inputs[0], **chosen(attributes, "epsilon")))[: len(outputs)]
        if len(outputs) > 1 or (version < 7 and not attributes.get("is_test")):
            raise NotImplementedError(f"BatchNormalization-{version} in training mode has no reference implementation.")
        return (batch_normalization(*inputs, **chosen(attributes, "epsilon")),)


class Scatter(ScatterElements):
    """Scatter-9, which version 11 renamed; onnx.reference has the new name only."""

    op_domain = ""


class _Softmax(OpRun):
    """Before version 13 the axes from ``axis`` on (1 by default) count as one; since then ``axis`` is the only one."""

    op_domain = ""
    function: Callable[..., Array]

    def _run(self, X: Array, axis: int | None = None) -> tuple[Array]:
        function = type(self).function
        if _opset(self) >= 13:
            return (function(X, -1 if axis is None else axis),)
        # onnx.reference fills absent attributes with the newest version's defaults, so the node itself is asked.
        given = any(attribute.name == "axis" for attribute in self.onnx_node.attribute)
        return (function(flatten_from(X, axis if given and axis is not None else 1)).reshape(X.shape),)


class NonMaxSuppression(_NonMaxSuppression):
    """NonMaxSuppression, whose limits are numbers with or without an axis, or left out: 0, and no least score."""

    op_domain = ""

    def _run(self, boxes: Array, scores: Array, *limits: Array | None, **attributes: Any) -> tuple[Array]:
        listed = [None if each is None else np.asarray(each).reshape(-1) for each in limits]
        listed += [None] * (3 - len(listed))
        for place, dtype in enumerate((np.int64, np.float32)):
            if listed[place] is None:
                listed[place] = np.zeros(1, dtype)
        return (np.asarray(super()._run(boxes, scores, *listed, **attributes)[0]),)  # type: ignore[no-untyped-call]


class Unique(_Unique):
    """Unique of the list of all elements where no axis is given, in the order of the data where none are sorted.

    Onnx's evaluator takes rows for that, and sorts nevertheless where nothing is asked for but the elements.
    """

    op_domain = ""

    def _run(self, x: Array, axis: int | None = None, sorted: int | None = None) -> tuple[Array, ...]:
        run: Callable[..., tuple[Array, ...]] = super()._run
        data, along = (x.reshape(-1), 0) if axis is None else (x, axis)
        unique, *told = run(data, axis=axis, sorted=sorted)
        if not sorted:
            firsts = np.unique(data, return_index=True, axis=axis)[1]
            unique = np.take(data, np.sort(firsts), axis=along)
        return (unique, *told)


class CumSum(_CumSum):
    """CumSum, whose axis is a number with or without an axis of its own."""

    op_domain = ""

    def _run(self, x: Array, axis: Array, exclusive: int | None = None, reverse: int | None = None) -> tuple[Array]:
        number = np.reshape(axis, ())
        return (np.asarray(super()._run(x, number, exclusive, reverse)[0]),)  # type: ignore[no-untyped-call]


def _global_lp_pool(X: Array, **attributes: Any) -> Array:
    return lp_pool(X, kernel_shape=list(X.shape[2:]), **attributes)


def _global_max_pool(X: Array) -> Array:
    # onnx.reference keeps an axis too many of a volume.
    return np.asarray(X.max(axis=tuple(range(2, X.ndim)), keepdims=True))


def _mean(*inputs: Array) -> Array:
    # onnx.reference adds into the first, which can't take the shape of the others.
    return np.asarray(sum(inputs[1:], inputs[0]) / inputs[0].dtype.type(len(inputs)))


def _softsign(X: Array) -> Array:
    # onnx.reference computes it in place, which a number has none of.
    return np.asarray(X / (1 + np.abs(X)), X.dtype)


def _softplus(X: Array) -> Array:
    # onnx.reference 1.19 and 1.20 take the exponential of large numbers, which is infinite.
    return np.asarray(np.logaddexp(0, X.astype(np.float64))).astype(X.dtype)


def _gather_elements(data: Array, indices: Array, axis: int = 0) -> Array:
    # onnx.reference wants indices for all rows of the other axes.
    places = list(np.ogrid[tuple(slice(length) for length in indices.shape)])
    places[axis] = indices
    return np.asarray(data[tuple(places)])


SPEC_OPS: list[type[OpRun]] = [
    operator("Conv", conv, *CONVOLUTION),
    operator("ConvTranspose", conv_transpose, *CONVOLUTION, "output_padding", "output_shape"),
    MaxPool,
    operator("AveragePool", average_pool, *WINDOW, "ceil_mode", "count_include_pad"),
    operator("LpPool", lp_pool, *WINDOW, "ceil_mode", "p"),
    operator("GlobalLpPool", _global_lp_pool, "p"),
    operator("GlobalMaxPool", _global_max_pool),
    operator("Mean", _mean),
    operator("Softsign", _softsign),
    operator("Softplus", _softplus),
    operator("GatherElements", _gather_elements, "axis"),
    operator("STFT", stft, "onesided"),
    Pad,
    Upsample,
    Resize,
    BatchNormalization,
    operator("LRN", local_response_normalization, "size", "alpha", "beta", "bias"),
    operator("LpNormalization", lp_normalization, "axis", "p"),
    *(
        type(name, (_Softmax,), {"function": staticmethod(function)})
        for name, function in (("Softmax", softmax), ("LogSoftmax", log_softmax), ("Hardmax", hardmax))
    ),
    Loop,
    NonMaxSuppression,
    CumSum,
    OneHot,
    Scatter,
    operator("ConvInteger", conv_integer, *CONVOLUTION),
    operator("QLinearConv", qlinear_conv, *CONVOLUTION),
    Unique,
    *RECURRENT_OPS,
    *CONTRIB_OPS,
]
"""For ``ReferenceEvaluator(model, new_ops=SPEC_OPS)``; :class:`SpecEvaluator` also reaches model-local functions."""


class SpecEvaluator(ReferenceEvaluator):
    """A reference evaluator with padfix's kernels in the main graph, in bodies and in model-local functions.

    onnx.reference hands ``new_ops`` to bodies but not to functions; it builds both with its own class, so a class that
    brings the operators along reaches every node. Nor does it know the domain ``ai.onnx`` by that name.
    """

    def __init__(
        self,
        proto: Any,
        opsets: dict[str, int] | None = None,
        functions: list[Any] | None = None,
        verbose: int = 0,
        new_ops: list[type[OpRun]] | None = None,
        **options: Any,
    ) -> None:
        if isinstance(proto, ModelProto):
            proto = in_one_spelling(proto)
        super().__init__(proto, opsets, functions, verbose, [*(new_ops or []), *SPEC_OPS], **options)

    def _load_impl(self, node: Any, input_types: Any = None) -> Any:
        form = None
        if node.domain in ("", "ai.onnx"):
            form = early_form(node, self.opsets.get(node.domain, 1))
        return form or super()._load_impl(node, input_types)
