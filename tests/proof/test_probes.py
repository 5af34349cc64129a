"""Probes: the right types, sizes that agree with each other, data that reveals slips."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from padfix.errors import UsageError
from padfix.proof.executors import ExecutionFailed, TensorSpec
from padfix.proof.facts import control_inputs, named_lengths, refine
from padfix.proof.probes import (
    KINDS,
    dynamic_sizes,
    every_small_size,
    fill,
    is_dynamic,
    make_probe,
    resolve,
    with_shapes,
)

IMAGE = TensorSpec("x", TensorProto.FLOAT, ("N", 3, "H", "W"))


def probes_of(inputs, *, shapes=None, **settings) -> list:
    """Return a probe of each kind, each at its first choice of sizes."""
    specs = with_shapes(inputs, shapes)
    return [make_probe(specs, next(dynamic_sizes(specs, kind)), kind, **settings) for kind in KINDS]


def test_every_kind_is_made_once_and_is_repeatable() -> None:
    probes = probes_of([IMAGE], seed=3)
    assert [probe.name for probe in probes] == list(KINDS)
    again = probes_of([IMAGE], seed=3)
    for probe, other in zip(probes, again, strict=True):
        assert np.array_equal(probe.arrays["x"], other.arrays["x"])
    assert not np.array_equal(probes[0].arrays["x"], probes_of([IMAGE], seed=4)[0].arrays["x"])


def test_sizes_vary_in_parity_and_differ_between_axes() -> None:
    shapes = [probe.arrays["x"].shape for probe in probes_of([IMAGE])]
    assert {shape[0] for shape in shapes} == {1, 2}
    assert all(shape[1] == 3 for shape in shapes)
    heights = {shape[2] for shape in shapes}
    assert {height % 2 for height in heights} == {0, 1}
    assert len(heights) >= 5
    assert all(shape[2] != shape[3] for shape in shapes)


def test_a_symbol_has_one_length_everywhere() -> None:
    inputs = [
        TensorSpec("mask", TensorProto.FLOAT, ("B",)),
        TensorSpec("a", TensorProto.FLOAT, ("B", "T", 8)),
        TensorSpec("b", TensorProto.FLOAT, ("B", 4, "T")),
    ]
    shapes = resolve(inputs, 2, (37, 41, 35))
    assert shapes == {"mask": (2,), "a": (2, 37, 8), "b": (2, 4, 37)}


def test_nameless_axes_of_several_inputs_agree() -> None:
    inputs = [TensorSpec(name, TensorProto.FLOAT, (None, None, None, 3)) for name in "ab"]
    shapes = resolve(inputs, 1, (37, 41))
    assert shapes["a"] == shapes["b"] == (1, 37, 41, 3)


def test_many_open_axes_are_short_each() -> None:
    inputs = [TensorSpec("x", TensorProto.FLOAT, (None,) * 7)]
    shapes = list(dynamic_sizes(inputs, "normal"))
    assert shapes[0] == {"x": (1, 4, 5, 4, 4, 4, 5)}
    assert any(shape["x"][0] % 6 == 0 and min(shape["x"]) > 1 for shape in shapes), "blocks of 2 by 3"


def test_states_of_a_recurrent_network_have_the_batch_behind_their_layers() -> None:
    inputs = [TensorSpec("x", TensorProto.FLOAT, (None, None)), TensorSpec("h", TensorProto.FLOAT, (2, None, 128))]
    first, second = list(dynamic_sizes(inputs, "normal"))[:2]
    assert first == {"x": (1, 37), "h": (2, 1, 128)}
    assert second == {"x": (1, 37), "h": (2, 37, 128)}
    encodings = [inputs[0], TensorSpec("e", TensorProto.FLOAT, (1, None, 128))]
    assert next(dynamic_sizes(encodings, "normal")) == {"x": (1, 37), "e": (1, 37, 128)}


def test_static_inputs_have_one_choice_only() -> None:
    spec = TensorSpec("x", TensorProto.FLOAT, (1, 3, 8, 8))
    assert not is_dynamic([spec])
    assert list(dynamic_sizes([spec], "normal")) == [{"x": (1, 3, 8, 8)}]


def test_other_sizes_hold_multiples_of_32_and_known_networks() -> None:
    heights = [shapes["x"][2] for shapes in dynamic_sizes([IMAGE], "ramp")]
    assert {64, 96, 128, 224, 299} <= set(heights)
    assert len(heights) == len(set(map(str, dynamic_sizes([IMAGE], "ramp"))))


def test_where_no_usual_size_does_named_lengths_come_first_and_rows_in_blocks_last() -> None:
    nodes = """
        c = Constant <value_ints = [-1, 84, 5000]> ()
        y = If (b) <then_branch = t () => (float[a] t) { k = Constant <value_int = 40> () t = Relu (x) },
                    else_branch = e () => (float[a] e) { e = Abs (x) }>
    """
    graph = onnx.parser.parse_graph(f"g (bool b, float[n, m] x) => (float[a] y) {{ {nodes} }}")
    assert named_lengths(graph) == [40, 41, 84, 85]
    sizes = [shapes["x"] for shapes in every_small_size([TensorSpec("x", TensorProto.FLOAT, ("n", "m"))], [40, 84])]
    assert sizes[:3] == [(1, 40), (1, 84), (1, 1)]
    assert (84, 32) in sizes
    assert (14, 8) in sizes


def test_unknown_rank_asks_for_a_shape() -> None:
    spec = TensorSpec("x", TensorProto.FLOAT, None)
    with pytest.raises(ExecutionFailed, match="--shape x="):
        probes_of([spec])
    assert probes_of([spec], shapes={"x": (1, 5)})[0].arrays["x"].shape == (1, 5)


def test_shapes_of_the_user_are_checked() -> None:
    assert with_shapes([IMAGE], {"x": (1, 3, 0, 7)})[0].shape == (1, 3, "H", 7)
    with pytest.raises(UsageError, match="no input 'z'"):
        with_shapes([IMAGE], {"z": (1,)})
    with pytest.raises(UsageError, match="4 axes"):
        with_shapes([IMAGE], {"x": (1, 3)})


FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16)
INTEGERS = (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT16)
OTHERS = (TensorProto.BOOL, TensorProto.STRING, TensorProto.COMPLEX64)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(FLOATS + INTEGERS + OTHERS),
    st.lists(st.integers(0, 5), max_size=4).map(tuple),
)
def test_fill_has_shape_and_type_and_is_finite(kind: str, elem_type: int, shape: tuple[int, ...]) -> None:
    array = fill(kind, shape, elem_type, np.random.default_rng(0))
    assert array.shape == shape
    assert array.dtype == helper.tensor_dtype_to_np_dtype(elem_type)
    if elem_type != TensorProto.STRING:
        assert bool(np.all(np.isfinite(array)))
    if elem_type in (TensorProto.INT32, TensorProto.INT64):
        assert array.size == 0 or (array.min() >= 0 and array.max() <= 7)


def test_kinds_are_what_they_are_called() -> None:
    random = np.random.default_rng(0)
    shape = (1, 2, 6, 7)
    normal = fill("normal", shape, TensorProto.FLOAT, random)
    assert normal.min() < 0 < normal.max()
    assert fill("negative", shape, TensorProto.FLOAT, random).max() < 0
    ramp = fill("ramp", shape, TensorProto.FLOAT, random)
    assert len(np.unique(ramp)) == ramp.size
    impulses = fill("impulses", shape, TensorProto.FLOAT, random)
    assert len(np.unique(impulses[impulses != 0])) == 8
    assert np.count_nonzero(impulses[:, :, 1:-1, 1:-1]) == 0
    assert np.all(fill("ones", shape, TensorProto.FLOAT, random) == 1)
    image = fill("image", shape, TensorProto.FLOAT, random)
    assert image.min() >= 0
    assert image.max() <= 1
    assert fill("ramp", (300,), TensorProto.UINT8, random).max() == 255


def test_channels_are_read_from_the_convolution_behind_a_transpose() -> None:
    graph = helper.make_graph(
        [
            helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
            helper.make_node("Conv", ["t", "w"], ["y"], group=2),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["a", "b", "c", "d"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor("w", TensorProto.FLOAT, [4, 3, 1, 1], [0.0] * 12)],
    )
    (refined,) = refine([TensorSpec("x", TensorProto.FLOAT, ("a", "b", "c", "d"))], graph)
    assert refined.shape == ("a", "b", "c", 6)


def test_rank_is_read_from_the_pool() -> None:
    graph = helper.make_graph(
        [helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    (refined,) = refine([TensorSpec("x", TensorProto.FLOAT, None)], graph)
    assert refined.shape == (None, None, None, None)


def test_scales_that_are_inputs_get_values_that_make_sense() -> None:
    graph = helper.make_graph(
        [helper.make_node("Upsample", ["x", "s"], ["y"])],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 3, 4]),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, [4]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    specs = [TensorSpec("x", TensorProto.FLOAT, (1, 2, 3, 4)), TensorSpec("s", TensorProto.FLOAT, (4,))]
    probes = probes_of(specs, controls=control_inputs(graph))
    scales = [probe.arrays["s"] for probe in probes]
    assert all(np.array_equal(each[:2], [1, 1]) and each.min() > 0 for each in scales)
    assert any(each[2] != each[3] for each in scales)
