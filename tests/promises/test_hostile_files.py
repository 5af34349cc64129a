"""Each kind of bad file has its answer: exit 2 with one message, or the right answer, fast, in little memory.

What is absurd is found from the file, without any limit; ``--untrusted`` is for what only shows when it is run.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import padfix
from padfix.operators.other_traits import OTHERS
from tests.fuzz.judge import Answer, ask
from tests.fuzz.mutation import varint

CHECK = ("check", "model.onnx")
INSPECT = ("inspect", "model.onnx")
NO_VERIFY = ("convert", "--no-verify", "model.onnx", "-o", "out.onnx")
CONVERT = ("convert", "model.onnx", "-o", "out.onnx")
SPEC = ("convert", "--reference", "spec", "model.onnx", "-o", "out.onnx")
ALL = (CHECK, INSPECT, NO_VERIFY, CONVERT, SPEC)


def value(name: str, shape=(1, 2, 8, 8), kind: int = TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def pool(source: str = "x", result: str = "y", **attributes) -> NodeProto:
    given = {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"} | attributes
    empty = {name for name, value in given.items() if value == []}
    node = helper.make_node("MaxPool", [source], [result], **{name: given[name] for name in given.keys() - empty})
    node.attribute.extend(AttributeProto(name=name, type=AttributeProto.INTS) for name in sorted(empty))
    return node


def model(*nodes: NodeProto, initializers=(), shape=(1, 2, 8, 8), opset: int = 17, **more) -> ModelProto:
    graph = helper.make_graph(list(nodes), "g", [value("x", shape)], [value("y", None)], list(initializers))
    return helper.make_model(graph, **({"opset_imports": [helper.make_opsetid("", opset)], "ir_version": 8} | more))


def constant(name: str, data: object) -> TensorProto:
    return numpy_helper.from_array(np.asarray(data), name)


def answers(data: ModelProto | bytes, folder: Path, commands=ALL) -> list[Answer]:
    """Return what each command answers, after making sure that the answers are clean."""
    content = data if isinstance(data, bytes) else data.SerializeToString()
    (folder / "model.onnx").write_bytes(content)
    found = []
    for command in commands:
        answer = ask(command, folder)
        assert answer.complaint() is None, (command, answer)
        assert (folder / "model.onnx").read_bytes() == content
        found.append(answer)
    return found


def refused(data: ModelProto | bytes, folder: Path, says: str, commands=ALL) -> None:
    for answer in answers(data, folder, commands):
        assert answer.code == 2
        assert says in answer.stderr, answer.stderr
        assert answer.stderr.count("error: ") == 1


WHOLE = model(pool()).SerializeToString()
GRAPH_AT = WHOLE.index(b"\x3a")  # field 7, the graph

BYTES = {
    "empty": (b"", "is empty"),
    "zeros": (bytes(1000), "not"),
    "ones": (b"\xff" * 1000, "not"),
    "text": (b"hello world\n" * 20, "text"),
    "pickle": (b"\x80\x04\x95\x00.", "pickle"),
    "random": (np.random.default_rng(0).bytes(5000), "not"),
    "an over-long varint": (b"\x08" + b"\x80" * 11 + WHOLE, ""),
    "a length past the end": (WHOLE + b"\x3a" + varint(2**40), ""),
    "a length of 2**64": (WHOLE[: GRAPH_AT + 1] + varint(2**64 - 1) + WHOLE[GRAPH_AT + 2 :], ""),
    "field number zero": (WHOLE + b"\x02\x01a", ""),
    "a group": (WHOLE + b"\x0b\x0c", ""),
}


@pytest.mark.parametrize("kind", BYTES)
def test_bytes_that_are_no_model(kind: str, tmp_path: Path) -> None:
    data, says = BYTES[kind]
    refused(data, tmp_path, says)


def nested(depth: int) -> GraphProto:
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["o"])], "g", [], [value("o", None)])
    for _ in range(depth):
        node = helper.make_node(
            "If",
            ["c"],
            ["o"],
            then_branch=graph,
            else_branch=helper.make_graph([helper.make_node("Identity", ["x"], ["o"])], "e", [], [value("o", None)]),
        )
        graph = helper.make_graph([node], "g", [], [value("o", None)])
    return graph


def nested_bytes(depth: int) -> bytes:
    """A model of If in If in If; deeper than Python's protobuf would write it."""
    inner = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["o"])], "g", [], [value("o", None)]
    ).SerializeToString()

    def field(number: int, data: bytes) -> bytes:
        return varint(number << 3 | 2) + varint(len(data)) + data

    for _ in range(depth):
        attribute = field(1, b"then_branch") + b"\xa0\x01\x05" + field(6, inner)
        node = field(1, b"c") + field(2, b"o") + field(4, b"If") + field(5, attribute)
        inner = field(1, node) + field(2, b"g") + field(12, value("o", None).SerializeToString())
    return b"\x08\x08" + field(7, inner) + field(8, helper.make_opsetid("", 17).SerializeToString())


@pytest.mark.parametrize("depth", [40, 300, 5000])
def test_bodies_nested_deep(depth: int, tmp_path: Path) -> None:
    refused(nested_bytes(depth), tmp_path, "nested")


def test_bodies_nested_as_deep_as_protobuf_allows(tmp_path: Path) -> None:
    graph = nested(20)
    node = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=graph)
    answers(model(node, initializers=[constant("c", True)]), tmp_path)


WRONG = {
    "missing opset_import": (lambda m: m.ClearField("opset_import"), "opset_import"),
    "opset 9999": (lambda m: setattr(m.opset_import[0], "version", 9999), "opset 9999"),
    "opset 0": (lambda m: setattr(m.opset_import[0], "version", 0), "opset 0"),
    "no graph": (lambda m: m.ClearField("graph"), "no"),
    "an undefined input": (lambda m: m.graph.node[0].input.__setitem__(0, "z"), "which nothing gives"),
    "an output twice": (lambda m: m.graph.node.append(pool()), "given twice"),
    "an input twice": (lambda m: m.graph.input.append(value("x")), "given twice"),
    "a cycle": (lambda m: m.graph.node[0].input.__setitem__(0, "y"), "depends on its own result"),
    "element type 77": (lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 77), "element type 77"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_graphs_that_mean_nothing(kind: str, tmp_path: Path) -> None:
    wrong = model(pool())
    change, says = WRONG[kind]
    change(wrong)
    refused(wrong, tmp_path, says)


@pytest.mark.parametrize("name", [b"x", b"MaxPool", b"auto_pad"])
def test_names_that_are_not_text(name: bytes, tmp_path: Path) -> None:
    refused(WHOLE.replace(name, b"\xff" * len(name)), tmp_path, "UTF-8")


HUGE = [2**31 - 1, 2**40, 2**63 - 1]
WINDOW = ("kernel_shape", "strides", "dilations")
ATTRIBUTES: list[dict[str, object]] = [
    *({name: [number, number]} for name in WINDOW for number in (0, -1, -(2**63), *HUGE)),
    *({"pads": [number] * 4, "auto_pad": "NOTSET"} for number in (-1, *HUGE)),
    *({name: length} for name in (*WINDOW, "pads") for length in ([], [1], [1] * 3, [1] * 9)),
    *({"auto_pad": text} for text in ("", "SAME", "same_upper", "\x1b[31m", "X" * 100_000, b"\xff\xfe")),
    *({name: wrong} for name in (*WINDOW, "auto_pad") for wrong in (1, 1.5, "text", [1.5], ["a"])),
    {"storage_order": 7},
    {"ceil_mode": -5},
]


@pytest.mark.parametrize("shape", [(1, 2, 8, 8), ("n", 2, "h", "w")], ids=["static", "dynamic"])
def test_attributes_that_make_no_sense(shape: tuple, tmp_path: Path, slow: bool) -> None:
    for attributes in ATTRIBUTES if slow else ATTRIBUTES[::4]:
        for commands in ((CHECK, INSPECT, NO_VERIFY, CONVERT, SPEC) if slow else (CHECK, NO_VERIFY, CONVERT),):
            answers(model(pool(**attributes), shape=shape), tmp_path, commands)


@pytest.mark.parametrize(
    "shape",
    [(), (8,), (8, 8), (0, 0, 0, 0), (-5, 2, 8, 8), (1, 2**62, 8, 8), (2**63 - 1,) * 4, (1, 2, 2**20, 2**20)],
    ids=str,
)
def test_sizes_that_make_no_sense(shape: tuple, tmp_path: Path) -> None:
    answers(model(pool(), shape=shape), tmp_path)
    answers(model(helper.make_node("Upsample", ["x"], ["y"], scales=[1.0, 1e9, float("nan"), float("inf")]),
                  shape=shape, opset=7), tmp_path)  # fmt: skip


def test_weights_that_are_not_what_they_say(tmp_path: Path) -> None:
    conv = helper.make_node("Conv", ["x", "w"], ["y"], auto_pad="SAME_UPPER")
    for dims in ([2, 2, 3, 3], [2**40, 2**40], [-1, 2, 3, 3], [0], []):
        for raw in (b"", b"\0" * 7, b"\0" * 144):
            wrong = model(conv, initializers=[TensorProto(name="w", data_type=1, dims=dims, raw_data=raw)])
            *_, convert, spec = answers(wrong, tmp_path)
            if (dims, len(raw)) not in (([2, 2, 3, 3], 144), ([0], 0)):
                assert (convert.code, spec.code) == (2, 2)
                assert "are there" in convert.stderr


def test_a_stride_beyond_all_sizes_with_open_sizes(tmp_path: Path) -> None:
    (answer,) = answers(model(pool(strides=[2**31 - 1] * 2), shape=("n", 2, "h", "w")), tmp_path, [CHECK])
    assert answer.code == 1


def test_an_attribute_of_another_kind(tmp_path: Path) -> None:
    node = pool()
    next(each for each in node.attribute if each.name == "auto_pad").type = AttributeProto.INT
    check, _, _, convert, spec = answers(model(node), tmp_path)
    assert (check.code, convert.code, spec.code) == (1, 2, 2)
    assert "auto_pad is INT where the specification asks for STRING" in convert.stderr


@pytest.mark.parametrize("target", ["opencv", "tract", "ncnn"])
def test_operators_without_inputs(target: str, tmp_path: Path) -> None:
    """Those that targets have something to say of are looked at one by one, whatever the others."""
    file = tmp_path / "model.onnx"
    nodes = [helper.make_node(each, inputs, ["y"]) for each in sorted(OTHERS) for inputs in ([], [""])]
    for node in [*nodes, helper.make_node("Div", ["c"], ["y"])]:
        weights = [numpy_helper.from_array(np.ones(3, np.float32), "c")]
        file.write_bytes(model(node, initializers=weights, opset=20).SerializeToString())
        assert padfix.check(file, target=target).source


def test_operators_that_nobody_knows(tmp_path: Path) -> None:
    own = helper.make_node("Mystery", ["x"], ["a"], domain="own.domain")
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own.domain", 1)]
    check, *_, convert, spec = answers(model(own, pool("a"), opset_imports=imports), tmp_path)
    assert (check.code, convert.code, spec.code) == (1, 2, 2)
    check, *_, convert, spec = answers(model(helper.make_node("Mystery", ["x"], ["a"]), pool("a")), tmp_path)
    assert (check.code, convert.code, spec.code) == (1, 2, 2)


def test_names_are_never_echoed_raw(tmp_path: Path) -> None:
    evil = "\x1b]0;title\x07\x1b[2J\r\n::error::x\u202e"
    node = pool("x", evil, name=evil)
    data = model(
        node, helper.make_node("Relu", [evil], ["y"], name=evil), helper.make_node("Own", [evil], [f"{evil}2"])
    )
    data.graph.name = data.producer_name = evil
    data.graph.node[2].domain = evil
    data.opset_import.append(helper.make_opsetid(evil, 1))
    formats = [(*CHECK, "--format", name) for name in ("text", "json", "sarif", "junit", "github", "markdown", "html")]
    formats += [(*INSPECT, "--format", name) for name in ("table", "json", "config")]
    formats += [
        (*NO_VERIFY, "--format", "json"),
        (*NO_VERIFY, "-v"),
        (*CONVERT, "-v"),
        ("verify", "model.onnx", "model.onnx", "-v"),
    ]
    for answer in answers(data, tmp_path, [*ALL, *formats]):
        for sign in ("\x1b", "\x07", "\u202e", "\n::error::x"):
            assert sign not in answer.stdout + answer.stderr, answer
    for says, broken in (("nothing gives", pool(evil)), ("given twice", pool("x", "x", name=evil))):
        refused(model(broken), tmp_path, says)


@pytest.mark.parametrize("count", [300_000])
def test_very_many_tiny_nodes(count: int, tmp_path: Path, slow: bool) -> None:
    if not slow:
        count //= 10
    nodes = [helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(count)]
    nodes.insert(0, helper.make_node("Identity", ["x"], ["t0"]))
    nodes.append(pool(f"t{count}"))
    (answer,) = answers(model(*nodes), tmp_path, [CHECK])
    assert answer.code == 1


def loop_for_ever() -> ModelProto:
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["co"]), helper.make_node("Relu", ["v"], ["vo"])],
        "b",
        [value("i", (), TensorProto.INT64), value("c", (), TensorProto.BOOL), value("v")],
        [value("co", (), TensorProto.BOOL), value("vo")],
    )
    loop = helper.make_node("Loop", ["n", "t", "p"], ["y"], body=body)
    return model(pool("x", "p"), loop, initializers=[constant("n", 2**62), constant("t", True)])


def much_memory(count: int) -> ModelProto:
    nodes = [
        pool("x", "p"),
        helper.make_node("ConstantOfShape", ["n"], ["z"]),
        helper.make_node("ReduceSum", ["z"], ["s"]),
        helper.make_node("Add", ["p", "s"], ["y"]),
    ]
    return model(*nodes, initializers=[constant("n", [count])])


@pytest.mark.parametrize("command", [CONVERT, SPEC], ids=["onnxruntime", "spec"])
def test_a_model_that_runs_for_ever(command: tuple[str, ...], tmp_path: Path) -> None:
    (answer,) = answers(loop_for_ever(), tmp_path, [(*command, "--timeout", "3")])
    assert answer.code == 2
    assert "running a model, took longer than 3 s, and was stopped" in answer.stderr


@pytest.mark.parametrize("command", [CONVERT, SPEC], ids=["onnxruntime", "spec"])
def test_a_model_that_wants_all_memory(command: tuple[str, ...], tmp_path: Path) -> None:
    (answer,) = answers(much_memory(3 * 2**28), tmp_path, [(*command, "--untrusted")])
    assert answer.code == 2
    assert "--memory" in answer.stderr


@pytest.mark.parametrize("command", [CONVERT, SPEC], ids=["onnxruntime", "spec"])
def test_a_model_that_wants_more_memory_than_there_is(command: tuple[str, ...], tmp_path: Path) -> None:
    """Found from the file, without any limit."""
    (answer,) = answers(much_memory(2**40), tmp_path, [command])
    assert answer.code == 2
    assert "The tensor 'z' alone takes 4,096 GiB; this machine has" in answer.stderr


def test_functions_that_expand_without_end(tmp_path: Path) -> None:
    def function(index: int, last: bool):
        inner = (
            [helper.make_node("Relu", ["a"], ["b"])]
            if last
            else [
                helper.make_node(f"F{index + 1}", ["a"], ["c"], domain="own"),
                helper.make_node(f"F{index + 1}", ["c"], ["b"], domain="own"),
            ]
        )
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
        return helper.make_function("own", f"F{index}", ["a"], ["b"], inner, imports)

    functions = [function(index, index == 60) for index in range(61)]
    call = helper.make_node("F0", ["x"], ["p"], domain="own")
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    refused(model(call, pool("p"), functions=functions, opset_imports=imports), tmp_path, "calls of functions come to")


def test_an_attribute_that_is_everything_at_once(tmp_path: Path) -> None:
    node = pool()
    attribute = AttributeProto(name="auto_pad", type=AttributeProto.GRAPH, i=3, s=b"VALID")
    attribute.g.CopyFrom(nested(2))
    node.attribute.append(attribute)
    answers(model(node, initializers=[constant("c", True)]), tmp_path)
