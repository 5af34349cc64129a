"""PF105 on ConvTransposeWithDynamicPads: run by ONNX Runtime before and after, and run again without a change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import padfix
from tests.support.padding_models import session


def transpose_model(seed: int, auto_pad: str, *, pads: bool = True) -> tuple[ModelProto, np.ndarray]:
    rng = np.random.default_rng([7, seed])
    rank = 1 + seed % 3
    kernel = [int(each) for each in rng.integers(1, 5, rank)]
    strides = [int(each) for each in rng.integers(1, 4, rank)]
    attributes: dict[str, Any] = {
        "auto_pad": auto_pad,
        "strides": strides,
        "dilations": [int(each) for each in rng.integers(1, 3, rank)],
        "group": 2,
    }
    if seed % 2:
        attributes["output_padding"] = [stride - 1 for stride in strides]
    initializers = [
        numpy_helper.from_array(rng.standard_normal((4, 1, *kernel)).astype(np.float32), "W"),
        numpy_helper.from_array(rng.standard_normal(2).astype(np.float32), "B"),
    ]
    if pads:
        initializers.append(numpy_helper.from_array(np.zeros(2 * rank, np.int64), "P"))
    names = ["X", "W", "P" if pads else "", "B"]
    node = helper.make_node("ConvTransposeWithDynamicPads", names, ["Y"], domain="com.microsoft", **attributes)
    shape: list[Any] = [1, 4, *("s" if axis % 2 else 5 for axis in range(rank))]
    graph = helper.make_graph(
        [node],
        "transposed",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [None] * (rank + 2))],
        initializers,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    X = rng.standard_normal((1, 4, *[5] * rank)).astype(np.float32)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), X


@pytest.mark.sweep(4)
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
@pytest.mark.parametrize("seed", range(6))
def test_the_pads_become_a_constant_input(tmp_path: Path, seed: int, auto_pad: str) -> None:
    model, X = transpose_model(seed, auto_pad)
    onnx.save(model, tmp_path / "model.onnx")
    findings = padfix.check(tmp_path / "model.onnx").findings
    assert [finding.rule for finding in findings if finding.fixable] == ["PF105"]
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx")
    after = onnx.load(tmp_path / "out.onnx")
    assert [attribute.name for attribute in after.graph.node[0].attribute if attribute.name == "auto_pad"] == []
    (wanted,) = session(model, optimised=False).run(None, {"X": X})
    for optimised in (False, True):
        np.testing.assert_allclose(session(after, optimised=optimised).run(None, {"X": X})[0], wanted, atol=1e-5)
    padfix.convert(tmp_path / "out.onnx", tmp_path / "again.onnx")
    assert onnx.load(tmp_path / "again.onnx").graph == after.graph


def test_pads_that_are_missing_are_what_same_means(tmp_path: Path) -> None:
    model, X = transpose_model(1, "SAME_UPPER", pads=False)
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(padfix.PadfixError, match="--reference spec"):  # ONNX Runtime insists on the input
        padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx")
    padfix.convert(tmp_path / "model.onnx", tmp_path / "out.onnx", reference="spec")
    with_pads, _ = transpose_model(1, "SAME_UPPER")
    (wanted,) = session(with_pads, optimised=False).run(None, {"X": X})
    (found,) = session(onnx.load(tmp_path / "out.onnx"), optimised=True).run(None, {"X": X})
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_an_unknown_value_is_refused_with_a_reason(tmp_path: Path) -> None:
    model, _ = transpose_model(2, "SAME")
    onnx.save(model, tmp_path / "model.onnx")
    (finding,) = [each for each in padfix.check(tmp_path / "model.onnx").findings if each.rule == "PF110"]
    assert not finding.fixable
    assert "no value of the specification" in f"{finding.message} {finding.hint}"
