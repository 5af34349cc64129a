"""Random one-operator models with ``auto_pad``, the rules applied to them, and what the oracle says of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper, numpy_helper

from padfix.files.model import Model
from padfix.graph.splice import apply_splices, plan_splice
from padfix.operators.inference import infer
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rule, Site
from padfix.rules.conflicting_padding import ConflictingPadding
from padfix.rules.dynamic_same_padding import DynamicSamePadding
from padfix.rules.implicit_same_padding import ImplicitSamePadding
from padfix.rules.implicit_valid_padding import ImplicitValidPadding
from padfix.rules.zero_pad_before_max_pool import ZeroPadBeforeMaxPool
from tests.support import oracle

PADDING_RULES: tuple[Rule, ...] = (
    ImplicitSamePadding(),
    DynamicSamePadding(),
    ImplicitValidPadding(),
    ConflictingPadding(),
    ZeroPadBeforeMaxPool(),
)


@dataclasses.dataclass(frozen=True)
class Case:
    """One operator with one way of padding; ``dynamic`` marks the axes whose length the model does not know."""

    op_type: str
    opset: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    auto_pad: str
    dynamic: tuple[bool, ...]
    group: int = 1
    bias: bool = False
    kernel_shape: bool = True
    ceil_mode: int = 0
    count_include_pad: int = 0
    p: int = 2
    elem_type: int = TensorProto.FLOAT


def random_case(rng: np.random.Generator) -> Case:
    """Return a case that has at least one element of input under every window."""
    while True:
        op_type = str(rng.choice(["Conv", "MaxPool", "AveragePool", "LpPool"]))
        opset = int(rng.integers(7, 23))
        rank = int(rng.choice([1, 2, 2, 2, 3]))
        kernel = tuple(int(k) for k in rng.integers(1, 5 if rank < 3 else 4, rank))
        strides = tuple(int(s) for s in rng.integers(1, 5 if rank < 3 else 4, rank))
        dilated = opset >= {"Conv": 1, "MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op_type] and rng.random() < 0.4
        dilations = tuple(int(d) for d in rng.integers(1, 4, rank)) if dilated else (1,) * rank
        size = tuple(int(n) for n in rng.integers(1, 13 if rank < 3 else 8, rank))
        auto_pad = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        if any(n < span for n, span in zip(size, spans, strict=True)) and (auto_pad == "VALID" or dilated):
            continue
        ceil_since = {"Conv": 99, "MaxPool": 10, "AveragePool": 10, "LpPool": 18}[op_type]
        return Case(
            op_type,
            opset,
            size,
            kernel,
            strides,
            dilations,
            auto_pad,
            tuple(bool(each) for each in rng.random(rank) < rng.choice([0.0, 0.5, 1.0])),
            group=int(rng.choice([1, 2])) if op_type == "Conv" else 1,
            bias=bool(rng.random() < 0.5),
            kernel_shape=op_type != "Conv" or bool(rng.random() < 0.7),
            ceil_mode=int(opset >= ceil_since and rng.random() < 0.3),
            count_include_pad=int(rng.random() < 0.5),
            p=int(rng.choice([1, 2, 3])),
        )


def model_of(case: Case, rng: np.random.Generator) -> ModelProto:
    """Return the model; weights are initializers."""
    attributes: dict[str, object] = {"auto_pad": case.auto_pad, "strides": case.strides}
    if set(case.dilations) != {1}:
        attributes["dilations"] = case.dilations
    if case.kernel_shape:
        attributes["kernel_shape"] = case.kernel
    if case.ceil_mode:
        attributes["ceil_mode"] = 1
    inputs, initializers = ["X"], []
    if case.op_type == "Conv":
        attributes["group"] = case.group
        weights = rng.standard_normal((2 * case.group, 2, *case.kernel)).astype(np.float32)
        initializers.append(numpy_helper.from_array(weights, "W"))
        inputs.append("W")
        if case.bias:
            initializers.append(numpy_helper.from_array(rng.standard_normal(2 * case.group).astype(np.float32), "B"))
            inputs.append("B")
    if case.op_type == "AveragePool" and case.count_include_pad:
        attributes["count_include_pad"] = 1
    if case.op_type == "LpPool":
        attributes["p"] = case.p
    shape = [
        None if rank_unknown else length
        for length, rank_unknown in zip((1, 2 * case.group, *case.size), (False, False, *case.dynamic), strict=True)
    ]
    graph = helper.make_graph(
        [helper.make_node(case.op_type, inputs, ["Y"], name="window", **attributes)],
        "graph",
        [helper.make_tensor_value_info("X", case.elem_type, shape)],
        [
            helper.make_tensor_value_info(
                "Y", case.elem_type, ["n", "c", *(f"o{axis}" for axis in range(len(case.size)))]
            )
        ],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=8)


def expected(case: Case, model: ModelProto, X: np.ndarray) -> np.ndarray:
    """Return what the operator means, by brute force."""
    tensors = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    if case.op_type == "Conv":
        return oracle.conv(
            X, tensors["W"], tensors.get("B"), case.strides, case.dilations, None, case.auto_pad, case.group
        )
    kind = {"MaxPool": "max", "AveragePool": "average", "LpPool": "lp"}[case.op_type]
    ceil_mode = case.ceil_mode if case.auto_pad == "VALID" else 0
    return oracle.pool(
        X,
        kind,
        case.kernel,
        case.strides,
        case.dilations,
        auto_pad=case.auto_pad,
        ceil_mode=ceil_mode,
        count_include_pad=case.count_include_pad,
        p=case.p,
    )


def sizes_to_run(case: Case, rng: np.random.Generator, count: int = 3) -> list[tuple[int, ...]]:
    """Return the case's own size and, where axes are dynamic, others."""
    sizes = [case.size]
    spans = [(k - 1) * d + 1 for k, d in zip(case.kernel, case.dilations, strict=True)]
    if any(case.dynamic):
        for _ in range(count):
            size = tuple(
                int(rng.integers(span if case.auto_pad == "VALID" or set(case.dilations) != {1} else 1, span + 8))
                if free
                else length
                for length, span, free in zip(case.size, spans, case.dynamic, strict=True)
            )
            sizes.append(size)
    return sizes


def apply_rules(proto: ModelProto, rules: Sequence[Rule] = PADDING_RULES) -> list[tuple[str, Refusal | None]]:
    """Rewrite ``proto`` in place with ``rules`` alone (no proofs); a needed opset is simply set.

    Returns (code, refusal or None) of every finding in order.
    """
    outcome: list[tuple[str, Refusal | None]] = []
    for _ in range(4):
        changed = False
        for scope in reversed(infer(Model(proto))):
            for index in reversed(range(len(scope.nodes))):
                site = Site(scope, index, scope.nodes[index])
                for rule in rules:
                    if (site.domain, site.node.op_type) not in rule.operators or rule.match(site) is None:
                        continue
                    rewrite = rule.rewrite(site)
                    if isinstance(rewrite, Refusal):
                        outcome.append((rule.code, rewrite))
                        continue
                    plan_splice(scope, index, rewrite.after)
                    apply_splices(scope)
                    if rewrite.after.opset > scope.opset:
                        proto.opset_import[0].version = rewrite.after.opset
                    outcome.append((rule.code, None))
                    changed = True
                    break
        if not changed:
            break
    return outcome


def session(model: ModelProto, *, optimised: bool) -> onnxruntime.InferenceSession:
    """Return a session of ONNX Runtime with all optimisations or none."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimised else level.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
