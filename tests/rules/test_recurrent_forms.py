"""Recurrent layers for ncnn: what it runs as it is, with the sequence alone, or written step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper

import padfix
from padfix.errors import RefusedError

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}

LSTM_WEIGHTS = ", ".join(
    f"float[1,12,{size}] {name} = {{{', '.join(['0.1'] * 12 * size)}}}" for name, size in (("W", 2), ("R", 3))
)
"""Initializers of an LSTM of three units, of two features."""
UNITS, FEATURES, STEPS = 3, 4, 2


def saved(
    folder: Path,
    op_type: str = "LSTM",
    direction: str = "forward",
    behind: str = "squeezed",
    state: str = "",
    units: int = UNITS,
    **attributes: Any,
) -> Path:
    """Save a layer behind a Transpose, with what its sequence (or its state) goes through."""
    random, count = np.random.default_rng(0), 2 if direction == "bidirectional" else 1
    shapes = {
        "W": (GATES[op_type] * units, FEATURES),
        "R": (GATES[op_type] * units, units),
        "B": (2 * GATES[op_type] * units,),
    }
    tensors = {name: random.uniform(-1, 1, (count, *shape)).astype(np.float32) for name, shape in shapes.items()}
    tensors |= {"one": np.array([1]), "all": np.array([0, 0, -1])}
    names = ["turned", "W", "R", "B"]
    if state:
        size = (count, 1, units)
        values = np.zeros(size) if state == "zeros" else random.uniform(-1, 1, size)
        tensors |= {"h": values.astype(np.float32), "c": values.astype(np.float32)}
        names += ["", "h", "c"][: 3 if op_type == "LSTM" else 2]
    outputs = ["", "Z"] if behind == "state" else ["", "", "Z"] if behind == "cell" else ["Y"]
    nodes = [
        helper.make_node("Transpose", ["X"], ["turned"], perm=[1, 0, 2]),
        helper.make_node(op_type, names, outputs, hidden_size=units, direction=direction, **attributes),
    ]
    if behind == "squeezed" and count == 1:
        nodes.append(helper.make_node("Squeeze", ["Y", "one"], ["Z"]))
    elif behind == "squeezed":
        nodes.append(helper.make_node("Transpose", ["Y"], ["t"], perm=[0, 2, 1, 3]))
        nodes.append(helper.make_node("Reshape", ["t", "all"], ["Z"]))
    elif behind == "plain":
        nodes.append(helper.make_node("Neg", ["Y"], ["Z"]))
    rank = 4 if behind == "plain" else 3
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("X", 1, [1, STEPS, FEATURES])],
        [helper.make_tensor_value_info("Z", 1, [None] * rank)],
        [numpy_helper.from_array(value, name) for name, value in tensors.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(onnx.shape_inference.infer_shapes(model), folder / "model.onnx")
    return folder / "model.onnx"


def converted(folder: Path, source: Path, target: str = "ncnn") -> list[str]:
    padfix.convert(source, folder / "result.onnx", target=target)
    assert not padfix.check(folder / "result.onnx", target=target).findings
    return [each.op_type for each in onnx.load(folder / "result.onnx").graph.node if each.op_type != "Constant"]


@pytest.mark.parametrize("op_type", ["LSTM", "RNN"])
@pytest.mark.parametrize(("direction", "state"), [("forward", ""), ("forward", "all"), ("bidirectional", "")])
def test_a_layer_whose_sequence_is_squeezed_stays(op_type: str, direction: str, state: str, tmp_path: Path) -> None:
    assert not padfix.check(saved(tmp_path, op_type, direction, state=state), target="ncnn").findings


@pytest.mark.parametrize("op_type", ["LSTM", "RNN"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_a_batch_that_comes_first_is_refused_however_the_sequence_is_read(
    op_type: str, direction: str, tmp_path: Path
) -> None:
    source = saved(tmp_path, op_type, direction, layout=1)
    (finding,) = padfix.check(source, target="ncnn").findings
    assert finding.severity == "error" and "gives no network where layout puts the batch first" in finding.message
    padfix.convert(source, tmp_path / "result.onnx", target="ncnn", reference="spec")
    assert not padfix.check(tmp_path / "result.onnx", target="ncnn").findings


@pytest.mark.parametrize(
    ("given", "layers"),
    [
        ({"behind": "plain"}, ["LSTM", "Squeeze", "Unsqueeze", "Neg"]),
        ({"behind": "state"}, ["LSTM", "Squeeze", "Slice"]),
        ({"direction": "bidirectional", "state": "zeros"}, ["LSTM", "Transpose", "Reshape"]),
        ({"direction": "bidirectional", "behind": "plain"}, ["LSTM", "Transpose", "Reshape", "Reshape", "Transpose"]),
    ],
)
def test_a_layer_gives_its_sequence_alone(given: dict[str, Any], layers: list[str], tmp_path: Path) -> None:
    found = converted(tmp_path, saved(tmp_path, **given))
    assert found[1 : 1 + len(layers)] == layers


@pytest.mark.parametrize(
    ("op_type", "is_input", "layers"),
    [
        ("LSTM", False, ["Transpose", "LSTM"]),
        ("LSTM", True, ["Neg", "Reshape", "LSTM"]),
        ("GRU", True, ["Neg", "Reshape", "GRU"]),
    ],
)
def test_zeros_are_written_that_a_layer_leaves_out(
    op_type: str, is_input: bool, layers: list[str], tmp_path: Path
) -> None:
    source = saved(tmp_path, op_type)
    model = onnx.load(source)
    del model.graph.initializer[2]
    model.graph.node[1].input[3] = ""
    if is_input:
        model.graph.node[0].CopyFrom(helper.make_node("Neg", ["X"], ["turned"]))
    del model.graph.value_info[:]
    onnx.save(onnx.shape_inference.infer_shapes(model), source)
    assert converted(tmp_path, source, "onnx2tf")[: len(layers)] == layers


def test_a_layer_that_runs_backwards_is_turned_round_by_products(tmp_path: Path) -> None:
    found = converted(tmp_path, saved(tmp_path, direction="reverse"))
    assert found.count("MatMul") == 2
    assert found.count("LSTM") == 1


@pytest.mark.parametrize(
    "given",
    [
        {"op_type": "GRU"},
        {"op_type": "GRU", "direction": "bidirectional", "behind": "state"},
        {"op_type": "GRU", "direction": "reverse", "state": "all"},
        {"behind": "cell"},
        {"behind": "cell", "direction": "bidirectional", "state": "all"},
        {"op_type": "RNN", "direction": "bidirectional", "state": "all", "behind": "plain"},
        {"behind": "cell", "units": 24},
    ],
)
def test_a_layer_is_written_step_by_step(given: dict[str, Any], tmp_path: Path) -> None:
    assert not {"GRU", "LSTM", "RNN"} & set(converted(tmp_path, saved(tmp_path, **given)))


@pytest.mark.parametrize(("target", "before"), [("mnn", 0), ("opencv", 0), ("opencv", 1)])
def test_a_layer_is_written_step_by_step_elsewhere(target: str, before: int, tmp_path: Path) -> None:
    source = saved(tmp_path, "GRU", linear_before_reset=before)
    assert "GRU" not in converted(tmp_path, source, target)


def test_bounds_of_gates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(padfix.PadfixError, match="read in two ways"):
        converted(tmp_path, saved(tmp_path, clip=0.5))


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (["B", "", "", ""], ["B"]),
        (["", ""], []),
        (["B"], ["B"]),
        (["B", "", "h", "c", ""], ["B", "", "h", "c"]),
        (["B", "", "h", "c"], ["B", "", "h", "c"]),
        (["B", "", "h"], ["B", "", "h", "+"]),
        (["", "", "", "c"], ["+", "", "+", "c"]),
    ],
)
def test_an_lstm_names_nothing_or_both_states(names: list[str], left: list[str], tmp_path: Path) -> None:
    """OpenCV 5 counts the inputs; what is filled in with zeros is a plus."""
    model = onnx.load(saved(tmp_path, state="all", behind="plain"))
    del model.graph.node[1].input[3:]
    model.graph.node[1].input.extend(names)
    onnx.save(model, tmp_path / "model.onnx")
    converted(tmp_path, tmp_path / "model.onnx", "opencv@5.0.0.93")
    (layer,) = (each for each in onnx.load(tmp_path / "result.onnx").graph.node if each.op_type == "LSTM")
    assert [each if each in ("", "B", "h", "c") else "+" for each in layer.input[3:]] == left


@pytest.mark.parametrize(
    ("before", "behind", "images", "is_taken"),
    [
        ([], [], 1, True),
        ([("Relu", {}), ("Identity", {})], [], 1, True),
        ([], [("Exp", {})], 1, True),
        ([], [], 2, False),
        ([("Exp", {})], [], 1, False),
        ([("LayerNormalization", {})], [], 1, False),
    ],
)
def test_steps_that_come_first_in_the_model(
    before: list[Any], behind: list[Any], images: int, is_taken: bool, tmp_path: Path
) -> None:
    model = onnx.load(saved(tmp_path))
    given = model.graph.input[0].type.tensor_type.shape.dim
    given[0].dim_value, given[1].dim_value = STEPS, images
    layer, squeeze = model.graph.node[1:]
    del model.graph.node[:], model.graph.value_info[:]
    name = "X"
    for op_type, told in before:
        inputs = [name, "scale"] if op_type == "LayerNormalization" else [name]
        model.graph.node.append(helper.make_node(op_type, inputs, [f"{name}_"], **told))
        name += "_"
    layer.input[0] = name
    model.graph.node.extend([layer, squeeze])
    model.graph.node.extend(helper.make_node(op_type, ["Z"], ["unread"], **told) for op_type, told in behind)
    model.graph.initializer.append(numpy_helper.from_array(np.ones(FEATURES, np.float32), "scale"))
    onnx.save(model, tmp_path / "model.onnx")
    found = {each.op_type for each in padfix.check(tmp_path / "model.onnx", target="ncnn").findings}
    assert ("LSTM" not in found) == is_taken


@pytest.mark.parametrize("names", [["Z", ""], ["Z", "", ""]])
def test_the_last_output_of_an_lstm_has_a_name(names: list[str], tmp_path: Path) -> None:
    model = onnx.load(saved(tmp_path, behind="plain"))
    del model.graph.node[2:], model.graph.node[1].output[:]
    model.graph.node[1].output.extend(names)
    onnx.save(model, tmp_path / "model.onnx")
    converted(tmp_path, tmp_path / "model.onnx", "opencv@5.0.0.93")
    (layer,) = (each for each in onnx.load(tmp_path / "result.onnx").graph.node if each.op_type == "LSTM")
    assert list(layer.output) == ["Z"]


@pytest.mark.parametrize(("batch", "minded"), [(1, False), (2, True)])
def test_a_cell_beside_a_sequence_of_several_is_minded(batch: int, minded: bool, tmp_path: Path) -> None:
    model = onnx.load(saved(tmp_path, behind="plain"))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = batch
    del model.graph.node[2:], model.graph.node[1].output[:], model.graph.value_info[:]
    model.graph.node[1].output.extend(["Z", "H", "C"])
    model.graph.output.append(helper.make_tensor_value_info("C", 1, [1, batch, UNITS]))
    onnx.save(model, tmp_path / "model.onnx")
    found = padfix.check(tmp_path / "model.onnx", target="tract").findings
    assert bool([each for each in found if each.op_type == "LSTM"]) is minded


@pytest.mark.parametrize(
    ("lengths", "names", "minded"),
    [
        ("4,2,2", '"", H, C', True),
        ("4,2,2", 'Y, "", C', True),
        ("1,2,2", '"", H, C', False),
        ("4,1,2", '"", H, C', False),
        ("4,2,2", '"", "", C', False),
    ],
)
def test_a_cell_beside_the_last_of_several_states_is_minded(
    lengths: str, names: str, minded: bool, tmp_path: Path
) -> None:
    results = ", ".join(f"float[{'t,' * (each == 'Y')}1,b,3] {each}" for each in "YHC" if each in names)
    head = f"g (float[{lengths}] X) => ({results}) <{LSTM_WEIGHTS}>"
    text = f"{head} {{ {names} = LSTM <hidden_size = 3> (X, W, R) }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 14]> {text}'), tmp_path / "model.onnx")
    found = padfix.check(tmp_path / "model.onnx", target="tract").findings
    assert bool([each for each in found if each.op_type == "LSTM"]) is minded


@pytest.mark.parametrize(("lengths", "stays"), [("3,N,2", False), ("3,2,2", True), ("T,1,2", True), ("T,N,2", None)])
def test_an_lstm_of_how_many_sequences_is_open(lengths: str, stays: bool | None, tmp_path: Path) -> None:
    """OpenCV 4 lays it out for one; without the number of its steps they can't be written out."""
    text = f"g (float[{lengths}] X) => (float Y) <{LSTM_WEIGHTS}> {{ Y = LSTM <hidden_size = 3> (X, W, R) }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 14]> {text}')
    onnx.save(model, tmp_path / "model.onnx")
    if stays is None:
        with pytest.raises(RefusedError):
            padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv@4.14")
        return
    padfix.convert(tmp_path / "model.onnx", tmp_path / "result.onnx", target="opencv@4.14")
    types = [each.op_type for each in onnx.load(tmp_path / "result.onnx").graph.node]
    assert ("LSTM" in types) == stays


@pytest.mark.parametrize(("direction", "named"), [("forward", False), ("bidirectional", True)])
def test_the_sequence_of_both_directions_has_a_name(direction: str, named: bool, tmp_path: Path) -> None:
    count = 1 + named
    weights, more = (", ".join(["1"] * 12 * each * count) for each in (2, 3))
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[3,1,2] X) => (float Yh, float Yc)
        <float[{count},12,2] W = {{{weights}}}, float[{count},12,3] R = {{{more}}}> {{
        none, Yh, Yc = LSTM <direction = "{direction}", hidden_size = 3> (X, W, R) }}"""
    model = onnx.parser.parse_model(text)
    model.graph.node[0].output[0] = ""
    onnx.save(model, tmp_path / "model.onnx")
    converted(tmp_path, tmp_path / "model.onnx", "mnn")
    (layer,) = (each for each in onnx.load(tmp_path / "result.onnx").graph.node if each.op_type == "LSTM")
    assert bool(layer.output[0]) == named


@pytest.mark.parametrize("target", ["opencv@4.14.0", "opencv@5.0.0.93"])
def test_the_usual_activations_are_left_out_of_both_directions(target: str, tmp_path: Path) -> None:
    """What keras2onnx writes: OpenCV counts those of one direction."""
    source = saved(tmp_path, direction="bidirectional", activations=["Sigmoid", "Tanh", "Tanh"] * 2)
    assert "LSTM" in converted(tmp_path, source, target)
    (layer,) = (each for each in onnx.load(tmp_path / "result.onnx").graph.node if each.op_type == "LSTM")
    assert not any(each.name.startswith("activation") for each in layer.attribute)


@pytest.mark.parametrize(
    ("name", "numbers", "expected"),
    [
        ("HardSigmoid", (0.2, 0.5), "HardSigmoid"),
        ("HardSigmoid", (0.25, 0.5), "HardSigmoid"),
        ("LeakyRelu", (0.3,), "LeakyRelu"),
        ("Elu", (), "Elu"),
        ("Softsign", (), "Softsign"),
        ("Affine", (0.5, 0.25), "Mul"),
        ("ScaledTanh", (0.5, 0.25), "Tanh"),
    ],
)
def test_activations_take_their_numbers(name: str, numbers: tuple[float, ...], expected: str, tmp_path: Path) -> None:
    told = {f"activation_{each}": [number] for each, number in zip(("alpha", "beta"), numbers, strict=False)}
    source = saved(tmp_path, "GRU", activations=["Sigmoid", name], **told)
    found = converted(tmp_path, source, "mnn")
    assert expected in found
    assert "GRU" not in found


def test_activations_without_the_numbers_that_they_need_are_declined(tmp_path: Path) -> None:
    source = saved(tmp_path, "RNN", activations=["Affine"], activation_alpha=[2.0])
    with pytest.raises(RefusedError, match="others than are written out"):
        converted(tmp_path, source, "mnn")


@pytest.mark.parametrize(("behind", "squeezes"), [("LSTM", 0), ("Relu", 2)])
def test_directions_that_a_further_layer_reads_are_taken_apart_for_ncnn_by_a_reshape(
    behind: str, squeezes: int, tmp_path: Path
) -> None:
    weights = {
        "W": (2, 16, 5),
        "R": (2, 16, 4),
        **({"W2": (1, 12, 8), "R2": (1, 12, 3), "B2": (1, 24)} if behind == "LSTM" else {}),
    }
    layer = "L = LSTM <hidden_size = 3> (C, W2, R2, B2) Y = Squeeze (L, one)" if behind == "LSTM" else "Y = Relu (C)"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 13]> g (float[1,7,5] X) => (float Y)
        <int64[1] none = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}> {{
        T = Transpose <perm = [1, 0, 2]> (X)
        D = LSTM <direction = "bidirectional", hidden_size = 4> (T, W, R)
        a = Slice (D, none, one, one) A = Squeeze (a, one) b = Slice (D, one, two, one) B = Squeeze (b, one)
        C = Concat <axis = 2> (A, B) {layer} }}"""
    )
    chance = np.random.default_rng(1)
    for name, shape in weights.items():
        values = chance.standard_normal(shape).astype(np.float32) / 3
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    onnx.save(model, tmp_path / "model.onnx")
    converted(tmp_path, tmp_path / "model.onnx", "ncnn")
    types = [each.op_type for each in onnx.load(tmp_path / "result.onnx").graph.node]
    assert types[: types.index("Concat")].count("Squeeze") == squeezes


@pytest.mark.parametrize(("op_type", "state"), [("LSTM", "others"), ("GRU", "others"), ("LSTM", "zeros")])
def test_the_batch_of_constant_states_is_told_openvino(op_type: str, state: str, tmp_path: Path) -> None:
    source = saved(tmp_path, op_type, behind="plain", state=state)
    model = onnx.load(source)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(model, source)
    padfix.convert(source, tmp_path / "after.onnx", target="openvino")
    nodes = [node.op_type for node in onnx.load(tmp_path / "after.onnx").graph.node]
    assert nodes.count(op_type) == 1
    assert state == "zeros" or nodes[nodes.index(op_type) - 1] == "Reshape"
    assert not padfix.check(tmp_path / "after.onnx", target="openvino").findings
