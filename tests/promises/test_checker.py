"""Every file that is written passes ``onnx.checker`` in full whenever its source did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, parser

import padfix
from tests.support.networks import residual, u_net
from tests.support.padding_models import model_of, random_case

ROOT = Path(__file__).parents[2]
FIXTURES = sorted((ROOT / "fixtures").glob("**/*.onnxtxt")) + sorted((ROOT / "fixtures").glob("**/*.onnx"))
LIGHT = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx"))


def passes(path: Path) -> bool:
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception:  # the checker and shape inference raise errors of many kinds
        return False
    return True


def keeps_passing(source: Path, output: Path, **settings: object) -> None:
    """Convert without a proof, which the checker does not need: what is written is the same."""
    if not passes(source):
        pytest.skip("the source does not pass")
    padfix.convert(source, output, verify=False, partial=True, **settings)
    onnx.checker.check_model(str(output), full_check=True)


@pytest.mark.sweep(10)
@pytest.mark.parametrize("opset", [None, 21])
@pytest.mark.parametrize("path", [*FIXTURES, *LIGHT], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_file_that_passes_still_does(path: Path, opset: int | None, tmp_path: Path) -> None:
    source = path
    if path.suffix == ".onnxtxt":
        source = tmp_path / "source.onnx"
        onnx.save(parser.parse_model(path.read_text()), source)
    try:
        keeps_passing(source, tmp_path / "out.onnx", opset=opset)
    except padfix.SourceError as error:
        assert "has no meaning" in str(error)
    except padfix.PadfixError as error:
        assert opset is not None, error  # not every model can be moved


@pytest.mark.parametrize("seed", range(40))
def test_generated_windows(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    onnx.save(model_of(random_case(random), random), tmp_path / "in.onnx")
    keeps_passing(tmp_path / "in.onnx", tmp_path / "out.onnx")


@pytest.mark.parametrize("make", [u_net, residual])
def test_generated_networks(make, tmp_path: Path) -> None:
    onnx.save(make(), tmp_path / "in.onnx")
    keeps_passing(tmp_path / "in.onnx", tmp_path / "out.onnx")


def transposed(lengths: list[int], declared: list[int]) -> ModelProto:
    """Return a ConvTranspose without ``kernel_shape`` whose ``output_shape`` has ``lengths``."""
    weights = helper.make_tensor("w", TensorProto.FLOAT, [3, 8, 3, 3], np.ones(3 * 8 * 9, np.float32))
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], output_shape=lengths, strides=[2, 2])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 5, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, declared)],
        [weights],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("lengths", [[10, 12], [1, 8, 10, 12]])
def test_a_right_declaration_of_a_transposed_output_stays(lengths: list[int], tmp_path: Path) -> None:
    onnx.save(transposed(lengths, [1, 8, 10, 12]), tmp_path / "in.onnx")
    assert "PF303" not in {finding.rule for finding in padfix.check(tmp_path / "in.onnx").findings}
    padfix.convert(tmp_path / "in.onnx", tmp_path / "out.onnx", verify=False, partial=True)
    (output,) = onnx.load(tmp_path / "out.onnx").graph.output
    assert [entry.dim_value for entry in output.type.tensor_type.shape.dim] == [1, 8, 10, 12]


def test_a_correction_that_running_contradicts_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever shape inference may get wrong: here a rule that claims what is not so."""
    from padfix.rules import stale_shapes

    onnx.save(transposed([10, 12], [1, 8, 10, 12]), tmp_path / "in.onnx")
    wrong = stale_shapes.ValueType(TensorProto.FLOAT, (1, 8, 1, 8))
    monkeypatch.setattr(stale_shapes.StaleShapes, "_contradiction", staticmethod(lambda scope, value: wrong))
    report = padfix.convert(tmp_path / "in.onnx", tmp_path / "out.onnx", partial=True)
    (output,) = onnx.load(tmp_path / "out.onnx").graph.output
    assert [entry.dim_value for entry in output.type.tensor_type.shape.dim] == [1, 8, 10, 12]
    assert any("running gives [1, 8, 10, 12]" in note for note in report.notes)
