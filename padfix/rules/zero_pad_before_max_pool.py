"""PF108: a Pad of zeros before a pool, which ONNX Runtime fuses into other numbers or into what it can't load."""

from __future__ import annotations

import dataclasses

import numpy as np
from onnx import TensorProto, helper

from padfix.graph import attributes
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.clip import clip_bounds
from padfix.operators.constant_pad import given_pads
from padfix.operators.reading import read_window
from padfix.operators.refusal import Refusal
from padfix.operators.schemas import DRAWS
from padfix.operators.window import Pair, Window
from padfix.operators.written import SAME
from padfix.results import Finding
from padfix.rules.base import Rewrite, Rule, Site, Trial, TrialInput
from padfix.rules.build.explicit_pads import same_windows
from padfix.rules.build.pad_node import no_op_pad

_UNSIGNED = (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64)
_TRANSPARENT = frozenset({"Identity", "Cast", "Dropout"})
_NEVER_NEGATIVE = frozenset({"Relu", "Sigmoid", "HardSigmoid", "Softmax", "Softplus", "Abs", "Exp", "Sqrt"})
_DEPTH = 16


class ZeroPadBeforeMaxPool(Rule):
    """A Pad of zeros feeds a pool, and ONNX Runtime fuses the two into something else.

    MaxPool pads with minus infinity. `Pad(0) -> MaxPool` is therefore not a MaxPool with longer pads, unless every
    element is 0 or more; but ONNX Runtime's PadFusion (on by default since 1.17) makes it one as soon as the MaxPool
    has no `auto_pad`: where all elements of a window are negative, the result turns from 0 into a negative number.
    Writing out `auto_pad` would arm this, so padfix blocks the fusion.

    A second Pad, of no elements and with a value of 1 that is never used, stands between the two afterwards: PadFusion
    neither takes it nor looks behind it, and the optimiser still pushes a Transpose through both. (The input `axes` of
    Pad-18 would stop PadFusion as well, but ONNX Runtime 1.31 can't push a Transpose through such a Pad. A value of
    -0.0 would too, but its sign comes through the pool, and a Reciprocal behind makes another infinity of it.)

    Behind an operator that gives nothing negative (Relu, Sigmoid, ...) the fusion is harmless, and nothing is reported
    unless the pads would get longer than ONNX Runtime accepts.

    Before an AveragePool the fusion keeps the numbers, so it is reported only where the fused pads would get as long as
    the kernel, which ONNX Runtime then doesn't load, or where `ceil_mode` would drop a window that starts in them.

    Two other ways out, if the zeros were not meant: delete the Pad and use the pool's own pads, or pad with minus
    infinity.

    Refused: a Pad of which neither the pads nor the rank of the input are known.

    Before, opset 17:

        main (float[1,3,8,8] X) => (float[1,3,8,8] Y)
        <int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}> {
          padded = Pad (X, pads)
          Y = MaxPool <kernel_shape = [3, 3]> (padded)
        }

    After:

        zeros = Pad (X, pads)
        padded = Pad (zeros, no_pads, one)
        Y = MaxPool <kernel_shape = [3, 3]> (padded)

    References:

    - The ONNX specification of MaxPool: <https://onnx.ai/onnx/operators/onnx__MaxPool.html>
    - The fusion: <https://github.com/microsoft/onnxruntime/pull/18136>
    """

    code = "PF108"
    name = "zero-pad-before-max-pool"
    operators = frozenset({("", "Pad")})

    def match(self, site: Site) -> Finding | None:
        """Return a finding for a Pad of constant zeros whose only use is a pool that ONNX Runtime would fuse."""
        pool = _pool_after(site.scope, site.node.output[0]) if len(site.node.output) == 1 else None
        if pool is None or not _pads_with_zeros(site):
            return None
        if pool.operator.is_average:
            return self._before_average(site, pool)
        known = site.input_type(0)
        never_negative = known is not None and known.elem_type in _UNSIGNED
        if (never_negative or _never_negative(site)) and _fused_pads_are_short(site, pool):
            return None
        return self.finding(
            site,
            "A Pad of zeros before a MaxPool: ONNX Runtime fuses the two at its default optimisation level, as if "
            "the pool padded with zeros, and gives other numbers for negative elements.",
            "padfix convert writes the Pad so that it is not fused.",
        )

    def _before_average(self, site: Site, pool: Window) -> Finding | None:
        left_out = any(map(any, pool.explicit_pads)) and pool.leaves_pads_out
        if left_out or pool.auto_pad:
            return None  # then it is not fused
        if _fused_pads_are_short(site, pool) and _keeps_windows(site, pool):
            return None
        return self.finding(
            site,
            "A Pad of zeros before an AveragePool: ONNX Runtime fuses the two at its default optimisation level into "
            "a pool that it can't load, or that has other windows.",
            "padfix convert writes the Pad so that it is not fused.",
        )

    def rewrite(self, site: Site) -> Rewrite | Refusal:
        """Return the same Pad in a form that ONNX Runtime does not fuse."""
        node = site.node
        known = site.input_type(0)
        pads = given_pads(site.scope, node)  # they hold two entries for each axis
        rank = len(pads) // 2 if pads else known.rank if known is not None else None
        if rank is None:
            return Refusal("Neither the input's rank nor the pads are known: fix the input's shape (--shape).")
        builder = site.builder()
        inputs = [builder.input(name) for name in node.input]
        elem_type = known.elem_type if known is not None else TensorProto.UNDEFINED
        padded = builder.original(node, inputs)
        builder.output(node.output[0], no_op_pad(builder, padded, rank, elem_type))
        return Rewrite(builder.build(), _trials(site, rank), exact=True)


def _pads_with_zeros(site: Site) -> bool:
    """Whether ONNX Runtime would see a Pad of constant zeros here, at least after folding constants."""
    node = site.node
    if len(node.output) != 1 or len(node.input) > 3 or site.text("mode", "constant") not in ("constant", ""):
        return False
    if any(each.ref_attr_name for each in node.attribute):
        return False
    pads = given_pads(site.scope, node)
    if pads is not None and (not any(pads) or min(pads) < 0):
        return False
    if site.opset < 11:
        value = attributes.find(node, "value")
        return pads is not None and (value is None or value.f == 0.0)
    if not _folds(site.scope, site.input_name(1)):
        return False
    name = site.input_name(2)
    if not name:
        return True
    constant = site.constant(2)
    if constant is None:
        return _folds(site.scope, name)
    if constant.size != 1 or constant.reshape(-1)[0] != 0:
        return False
    return not (np.issubdtype(constant.dtype, np.floating) and np.signbit(constant.reshape(-1)[0]))


def _folds(scope: Scope, name: str, depth: int = _DEPTH) -> bool:
    """Whether the value is a constant, or computed from constants only."""
    if scope.constant(name) is not None:
        return True
    producer = scope.producer(name) if name else None
    if producer is None or depth == 0 or producer.op_type in DRAWS:
        return False
    if producer.op_type == "Constant":
        return not any(each.ref_attr_name for each in producer.attribute)
    if producer.op_type in ("Shape", "Size") and producer.input:
        known = scope.type_of(producer.input[0])
        if known is not None and known.lengths is not None:
            return True
    return bool(producer.input) and all(_folds(scope, each, depth - 1) for each in producer.input if each)


def _pool_after(scope: Scope, name: str) -> Window | None:
    """Return the pool that alone uses ``name``, operators that ONNX Runtime removes first looked through."""
    for _ in range(_DEPTH):
        consumers = scope.consumers(name)
        if len(consumers) != 1 or scope.is_output(name):
            return None
        consumer = consumers[0]
        if normal_domain(consumer.domain) or not consumer.input or consumer.input[0] != name:
            return None
        if consumer.op_type in ("MaxPool", "AveragePool"):
            pool = read_window(scope, consumer)
            return None if isinstance(pool, Refusal) or pool.has_indices else pool
        if consumer.op_type not in _TRANSPARENT or not consumer.output:
            return None
        name = consumer.output[0]
    return None


def _never_negative(site: Site) -> bool:
    producer = site.scope.producer(site.node.input[0])
    if producer is None or normal_domain(producer.domain):
        return False
    if producer.op_type == "Clip":
        return clip_bounds(site.scope, producer)[0] >= 0
    return producer.op_type in _NEVER_NEGATIVE


def _added(site: Site, pool: Window) -> tuple[Pair, ...] | None:
    """Return what the Pad adds on the pool's axes; None where that is not known."""
    pads, rank = given_pads(site.scope, site.node), pool.rank + 2
    return None if pads is None or len(pads) != 2 * rank else tuple(zip(pads[2:rank], pads[rank + 2 :], strict=True))


def _fused_pads_are_short(site: Site, pool: Window) -> bool:
    """Whether the fused pool would load: ONNX Runtime wants each pad to be shorter than the kernel."""
    added = _added(site, pool)
    if added is None:
        return False
    taps = [each or 1 for each in pool.kernel]
    own = tuple((each - 1, each - 1) for each in taps) if pool.auto_pad in SAME else pool.explicit_pads
    fused = zip(own, added, strict=True)
    sums = [(begin + before, end + after) for (begin, end), (before, after) in fused]
    return all(max(pair) < each for pair, each in zip(sums, taps, strict=True))


def _keeps_windows(site: Site, pool: Window) -> bool:
    """Whether the fused pool would have the same windows."""
    if not pool.written.ceil_mode:
        return True
    added, known = _added(site, pool), site.input_type(0)
    if added is None or known is None or known.shape is None or len(known.shape) != pool.rank + 2:
        return False
    return same_windows(dataclasses.replace(pool, sizes=known.shape[2:]), pool.explicit_pads, added)


def _trials(site: Site, rank: int) -> tuple[Trial, ...]:
    elem_type = site.elem_type(0)
    cases: list[Trial] = []
    for length in (1, 4):
        inputs: dict[str, TrialInput] = {
            site.node.input[0]: TrialInput((1, 2, *[length] * (rank - 2))[:rank], elem_type)
        }
        for position in (1, 2):
            name = site.input_name(position)
            if not name or name in inputs:
                continue
            constant = site.constant(position)
            if constant is None:
                dtype = helper.tensor_dtype_to_np_dtype(elem_type)
                constant = np.ones(2 * rank, np.int64) if position == 1 else np.zeros((), dtype)
            inputs[name] = TrialInput.of(constant)
        cases.append(inputs)
    return tuple(cases)
