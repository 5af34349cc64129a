"""Targets: what their files may say, and what is said of a file that says something else."""

from __future__ import annotations

from pathlib import Path

import onnx.parser
import pytest
from onnx import NodeProto

from padfix import targets
from padfix.cli.exits import run
from padfix.cli.group import cli
from padfix.errors import UsageError
from padfix.files.model import Model
from padfix.graph.scopes import Scope
from padfix.operators.constant_chains import COMPUTED
from padfix.operators.inference import infer
from padfix.operators.lists import COMPARING, ON_ONE
from padfix.operators.moved_results import CHANGING
from padfix.operators.other_traits import JOINING, RECURRENT, REDUCTIONS
from padfix.operators.traits import traits_of
from padfix.targets.traits import TRAITS


def test_the_targets_that_there_are() -> None:
    assert targets.names()[0] == "onnx"
    assert {"portable", "onnxruntime", "openvino", "opencv", "ncnn", "mnn", "tract", "tvm", "tensorrt"} <= set(
        targets.names()
    )
    assert targets.named("onnx").settings() == {"description": targets.named("onnx").description, "empty-batch": True}
    assert not targets.named("onnx").facts
    portable = targets.named("portable")
    assert (portable.minimum_opset, portable.maximum_opset, portable.pads) == (13, 17, "attribute")


def test_a_target_that_joins_others_has_their_facts_but_those_alone_and_the_narrowest_bounds() -> None:
    portable = targets.named("portable")
    for name in portable.joins:
        joined = targets.named(name)
        assert joined.facts
        for fact in joined.facts:
            taken = [
                (each.says, each.where, each.operators)
                for each in portable.facts
                if each.seen_on == joined.seen_on(fact)
            ]
            assert ((fact.says, fact.where, fact.operators) in taken) is not fact.alone
        assert portable.minimum_opset >= joined.minimum_opset
        assert portable.maximum_opset is not None
        assert portable.maximum_opset <= (joined.maximum_opset or portable.maximum_opset)


FACT = """
[[fact]]
operators = ["Conv"]
outcome = "silent"
says = "x"
evidence = "y"
date = 2026-11-21
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pad = 'node'", "no setting 'pad'"),
        ("pads = 1", "should be a string"),
        ("pads = 'beside'", "no way 'beside'"),
        ("minimum-opset = '13'", "whole number"),
        ("minimum-opset = true", "whole number"),
        ("minimum-opset = 18\nmaximum-opset = 17", "no opset at all"),
        ("minimum-opset", "not valid TOML"),
        ("versions = [1]", "list of strings"),
        ("fact = 1", "list of tables"),
        ("[[fact]]\noperators = ['Conv']\noutcome = 'silent'\nsays = 'x'\ndate = 2026-11-21", "lacks evidence"),
        (FACT + "where = { auto-padding = ['SAME_LOWER'] }", "no 'auto-padding'"),
        (FACT + "where = { auto-pad = ['SAME'] }", "auto-pad can't be 'SAME'"),
        (FACT + "where = { dilated = 1 }", "dilated can't be 1"),
        (FACT + "versions = ['9']", "none of the target's versions"),
        (FACT.replace("silent", "loud"), "refused or silent"),
        (FACT + "when = 1", "no 'when'"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=words) as caught:
        targets.load(path)
    assert str(path) in str(caught.value)


def test_the_command_prints_what_a_target_asks_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, ["targets", "portable"]) == 0
    printed = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert printed["minimum-opset"] == "13"
    assert run(cli, ["targets", "portabel"]) == 2
    assert "portable" in capsys.readouterr().err


def test_the_command_prints_every_fact_with_its_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, ["targets", "opencv"]) == 0
    printed = capsys.readouterr().out
    for fact in targets.named("opencv").facts:
        assert fact.says in printed
        assert fact.evidence in printed
        assert str(fact.date) in printed


def test_a_version_leaves_the_facts_of_others_out() -> None:
    old, new, both = (targets.named(name) for name in ("opencv@4.14", "opencv@5.0.0.93", "opencv"))
    assert old.versions == ("4.14.0",)
    assert {len(old.facts), len(new.facts)} < set(range(len(both.facts)))
    assert all(fact.versions == ("4.14.0",) for fact in old.facts)
    with pytest.raises(UsageError, match=r"Nothing is known of OpenCV '3'"):
        targets.named("opencv@3")
    with pytest.raises(UsageError, match=r"Nothing is known of OpenCV '4.1'"):
        targets.named("opencv@4.1")


@pytest.mark.parametrize("name", targets.names())
def test_every_fact_is_about_operators_and_traits_that_there_are(name: str) -> None:
    """A trait that no operator of the fact has would never fit, and be reported as unknown for ever."""
    for fact in targets.named(name).facts:
        for op_type in fact.operators:
            if "of-constants" in fact.where:
                assert op_type in COMPUTED
                assert set(fact.where) <= {
                    "of-constants",
                    "of-positive",
                    "before-einsum",
                    "lengths-chosen",
                    "order-unwritten",
                    "picks-of-stacks",
                    "reads-list-of-lengths",
                    "rank",
                    "elements",
                    "bytes",
                }
                continue
            read = traits_of(*example(op_type)) or () if op_type in EXAMPLES else ()
            assert set(fact.where) <= {*MADE_BY_FORMS.get(op_type, ()), *read}, (op_type, fact)


MADE_BY_FORMS: dict[str, set[str]] = {
    "producer": {"averages-pads", "written-by"},
    "sparse_initializer": {"by-node"},
    "Equal": {"meets-infinity"},
    "Exp": {"leaves-rows-out"},
    "com.microsoft.MatMulNBits": {"quantized-to"},
    "com.microsoft.QuantizeLinear": {"quantized-to"},
    "Slice": {"behind-window"},
    "Transpose": {"about-a-product", "over-batch"},
    "value_info": {
        "axes",
        "default-of-input",
        "empty-constant",
        "elements-apart",
        "read-constant",
        "type",
        "unread-constant",
        "inputs",
        "nameless-copied",
        "numbers",
        "odd-node",
        "odd-output",
        "of-input",
        "of-nothing",
        "new-file",
        "old-file",
        "shape-given",
        "sizes",
        "unread",
        "without-sign",
    },
}
"""Operators of forms, with the traits that these alone tell of them."""

EXAMPLES = {
    "AffineGrid": "(float[1,2,3] X) => (float[1,4,5,2] Y) <int64[4] s = {1, 3, 4, 5}> { Y = AffineGrid (X, s) }",
    "Celu": "(float[1,2] X) => (float[1,2] Y) { Y = Celu (X) }",
    "CenterCropPad": "(float[1,2] X) => (float[1,3] Y) <int64[2] s = {1, 3}> { Y = CenterCropPad (X, s) }",
    "Normalizer": '(float[2,3] X) => (float[2,3] Y) { Y = ai.onnx.ml.Normalizer <norm = "L1"> (X) }',
    **{
        name: f"(float[1,2] X) => (float[1,2] Y) {{ Y = {name} (X) }}"
        for name in (*CHANGING, "Selu", "ThresholdedRelu")
    },
    "Attention": "(float[1,1,2,4] Q, float[1,1,2,4] K) => (float[1,1,2,4] Y) { Y = Attention (Q, K, K) }",
    "Det": "(float[1,2,2] X) => (float[1] Y) { Y = Det (X) }",
    "Shrink": "(float[1,2] X) => (float[1,2] Y) { Y = Shrink (X) }",
    "Compress": "(float[2] X, bool[2] C) => (float[n] Y) { Y = Compress (X, C) }",
    "NonZero": "(float[1,2] X) => (int64[2,n] Y) { Y = NonZero (X) }",
    "RotaryEmbedding": """(float[1,2,3,4] X, float[1,3,2] C) => (float[1,2,3,4] Y) {
      Y = RotaryEmbedding (X, C, C) }""",
    "BitShift": '(uint8[1,2] X) => (uint8[1,2] Y) { Y = BitShift <direction = "LEFT"> (X, X) }',
    "CastLike": "(float[1,2] X) => (float[1,2] Y) { Y = CastLike (X, X) }",
    "Softsign": "(float[1,2] X) => (float[1,2] Y) { Y = Softsign (X) }",
    "EyeLike": "(float[2,2] X) => (float[2,2] Y) { Y = EyeLike (X) }",
    "IsInf": "(float[1,2] X) => (bool[1,2] Y) { Y = IsInf (X) }",
    "IsNaN": "(float[1,2] X) => (bool[1,2] Y) { Y = IsNaN (X) }",
    "ConstantOfShape": "(int64[1] S) => (float[N] Y) { Y = ConstantOfShape (S) }",
    "NegativeLogLikelihoodLoss": "(float[1,2] X, int64[1] T) => (float Y) { Y = NegativeLogLikelihoodLoss (X, T) }",
    "Range": "(float[1] X) => (int64[3] Y) <int64 a = {0}, int64 b = {3}, int64 c = {1}> { Y = Range (a, b, c) }",
    "Col2Im": "(float[1,4,1] X) => (float Y) <int64[2] i = {2, 2}, int64[2] b = {2, 2}> { Y = Col2Im (X, i, b) }",
    "QLinearMatMul": "(uint8[2,2] X, float s, uint8 z) => (uint8[2,2] Y) "
    "{ Y = QLinearMatMul (X, s, z, X, s, z, s, z) }",
    "Size": "(float[2] X) => (int64 Y) { Y = Size (X) }",
    "HannWindow": "(int64 X) => (float[A] Y) { Y = HannWindow (X) }",
    "HammingWindow": "(int64 X) => (float[A] Y) { Y = HammingWindow (X) }",
    "BlackmanWindow": "(int64 X) => (float[A] Y) { Y = BlackmanWindow (X) }",
    "OneHot": "(int64[3] I, float[2] V) => (float[3,4] Y) <int64 d = {4}> { Y = OneHot (I, d, V) }",
    **{name: f"(bool[1,2] X) => (bool[1,2] Y) {{ Y = {name} (X, X) }}" for name in ("And", "Or", "Xor")},
    "Not": "(bool[1,2] X) => (bool[1,2] Y) { Y = Not (X) }",
    "ConcatFromSequence": "(seq(float[2]) S) => (float[4] Y) { Y = ConcatFromSequence <axis = 0> (S) }",
    "SequenceAt": "(seq(float[2]) S) => (float[2] Y) <int64 i = {1}> { Y = SequenceAt (S, i) }",
    "SequenceLength": "(seq(float[2]) S) => (int64 Y) { Y = SequenceLength (S) }",
    "Einsum": '(float[3,4] X, float[4,5] Z) => (float[3,5] Y) { Y = Einsum <equation = "ij,jk->ik"> (X, Z) }',
    "ScatterElements": "(float[2] X, int64[1] I, float[1] U) => (float[2] Y) { Y = ScatterElements (X, I, U) }",
    "ScatterND": "(float[2] X, int64[1,1] I, float[1] U) => (float[2] Y) { Y = ScatterND (X, I, U) }",
    "GatherElements": "(float[2] X, int64[1] I) => (float[1] Y) { Y = GatherElements (X, I) }",
    "NonMaxSuppression": "(float[1,5,4] B, float[1,1,5] S) => (int64[N,3] Y) { Y = NonMaxSuppression (B, S) }",
    "Constant": "(float[1] X) => (float[3] Y) { Y = Constant <value_floats = [1.0, 2.0, 3.0]> () }",
    "Conv": "(float[1,2,8,8] X, float[2,2,3,3] W) => (float[1,2,6,6] Y) { Y = Conv (X, W) }",
    "ConvTranspose": "(float[1,2,8,8] X, float[2,2,3,3] W) => (float[1,2,10,10] Y) { Y = ConvTranspose (X, W) }",
    "MaxPool": "(float[1,2,8,8] X) => (float[1,2,6,6] Y) { Y = MaxPool <kernel_shape = [3, 3]> (X) }",
    "AveragePool": "(float[1,2,8,8] X) => (float[1,2,6,6] Y) { Y = AveragePool <kernel_shape = [3, 3]> (X) }",
    "QLinearConv": "(uint8[1,2,8,8] X, float s, uint8 z, uint8[2,2,3,3] W) => (uint8[1,2,6,6] Y) "
    "{ Y = QLinearConv (X, s, z, W, s, z, s, z) }",
    "LpPool": "(float[1,2,8,8] X) => (float[1,2,6,6] Y) { Y = LpPool <kernel_shape = [3, 3]> (X) }",
    "Pad": "(float[1,2] X) => (float[1,3] Y) <int64[4] p = {0, 0, 0, 1}> { Y = Pad (X, p) }",
    "Resize": "(float[1,2] X) => (float[1,4] Y) <float[2] s = {1, 2}> { Y = Resize (X, , s) }",
    "Sub": "(float[1,2,4] X) => (float[1,2,4] Y) <float[2,1] c = {1, 2}> { Y = Sub (c, X) }",
    "Div": "(float[1,2,4] X) => (float[1,2,4] Y) <float[2,1] c = {1, 2}> { Y = Div (c, X) }",
    "Reshape": "(float[1,2,4] X) => (float[1,2,2,2] Y) <int64[4] s = {0, 0, 2, 2}> { Y = Reshape (X, s) }",
    "GridSample": "(float[1,2,8,8] X, float[1,3,3,2] G) => (float[1,2,3,3] Y) { Y = GridSample (X, G) }",
    "HardSigmoid": "(float[1,2] X) => (float[1,2] Y) { Y = HardSigmoid (X) }",
    "Swish": "(float[1,2] X) => (float[1,2] Y) { Y = Swish (X) }",
    **{
        name: f"(float[1,2] X) => (float[1,2] Y) {{ Y = {name} (X) }}"
        for name in ON_ONE
        if name not in ("Clip", "HardSigmoid", "Softplus", "Tanh")
    },
    "Slice": "(float[1,2] X, int64[1] S) => (float[1,1] Y) { Y = Slice (X, S, S) }",
    "Add": "(float[1,2] X) => (float[1,2] Y) { Y = Add (X, X) }",
    "Clip": "(float[1,2] X) => (float[1,2] Y) { Y = Clip (X) }",
    "Softplus": "(float[1,2] X) => (float[1,2] Y) { Y = Softplus (X) }",
    "Tanh": "(float[1,2] X) => (float[1,2] Y) { Y = Tanh (X) }",
    "DepthToSpace": "(float[1,8,2,2] X) => (float[1,2,4,4] Y) { Y = DepthToSpace <blocksize = 2> (X) }",
    "SpaceToDepth": "(float[1,2,4,4] X) => (float[1,8,2,2] Y) { Y = SpaceToDepth <blocksize = 2> (X) }",
    "GlobalAveragePool": "(float[1,2,8,8] X) => (float[1,2,1,1] Y) { Y = GlobalAveragePool (X) }",
    "GlobalMaxPool": "(float[1,2,8,8] X) => (float[1,2,1,1] Y) { Y = GlobalMaxPool (X) }",
    "GlobalLpPool": "(float[1,2,8,8] X) => (float[1,2,1,1] Y) { Y = GlobalLpPool (X) }",
    "InstanceNormalization": "(float[1,2,8] X, float[2] S) => (float[1,2,8] Y) { Y = InstanceNormalization (X, S, S) }",
    **{name: f"(float[1,2,8] X) => (float[1,2,1] Y) {{ Y = {name} (X) }}" for name in REDUCTIONS},
    **{
        name: f"(float[1,2,8] X) => (float[1,2,8] Y) {{ Y = {name} (X) }}"
        for name in ("Hardmax", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "Mish", "Softmax")
    },
    "GroupNormalization": "(float[1,2,8] X, float[2] S) => (float[1,2,8] Y) { Y = GroupNormalization (X, S, S) }",
    "Gather": "(float[1,2] X, int64[2] I) => (float[2,2] Y) { Y = Gather (X, I) }",
    "Gemm": "(float[1,2] X, float[2,3] W) => (float[1,3] Y) { Y = Gemm (X, W) }",
    "Sum": "(float[1,2] X) => (float[1,2] Y) { Y = Sum (X) }",
    "Unique": "(int64[4] X) => (int64[N] Y) { Y = Unique (X) }",
    "Selu": "(float[4] X) => (float[4] Y) { Y = Selu (X) }",
    "SequenceErase": "(seq(float[2]) S) => (seq(float[2]) T) { T = SequenceErase (S) }",
    "SequenceInsert": "(seq(float[2]) S, float[2] X) => (seq(float[2]) T) { T = SequenceInsert (S, X) }",
    "ReverseSequence": "(float[4,4] X, int64[4] L) => (float[4,4] Y) { Y = ReverseSequence (X, L) }",
    "RMSNormalization": "(float[1,2] X, float[2] S) => (float[1,2] Y) { Y = RMSNormalization (X, S) }",
    "LayerNormalization": "(float[1,2] X, float[2] S) => (float[1,2] Y) { Y = LayerNormalization (X, S) }",
    "Mod": "(float[1,2] X) => (float[1,2] Y) { Y = Mod <fmod = 1> (X, X) }",
    "Transpose": "(float[1,2,3] X) => (float[1,3,2] Y) { Y = Transpose <perm = [0, 2, 1]> (X) }",
    "Flatten": "(float[1,2,3] X) => (float[1,6] Y) { Y = Flatten (X) }",
    "Concat": "(float[1,2] X) => (float[2,2] Y) { Y = Concat <axis = 0> (X, X) }",
    **{name: f"(float[1,2] X) => (bool[1,2] Y) {{ Y = {name} (X, X) }}" for name in COMPARING},
    "Mul": "(float[1,2] X) => (float[1,2] Y) { Y = Mul (X, X) }",
    "Where": "(bool[2] C, float[1,2] X) => (float[1,2] Y) { Y = Where (C, X, X) }",
    "RoiAlign": "(float[1,2,8,8] X, float[1,4] B, int64[1] I) => (float[1,2,1,1] Y) { Y = RoiAlign (X, B, I) }",
    **{name: f"(float[1,2] X) => (float[1,2] Y) {{ Y = {name} (X, X, X) }}" for name in JOINING},
    **{
        name: f"(float[1,2,4] X, float[1,3,4] W) => (float[1,1,2,3] Y) {{ Y = {name} <hidden_size = 3> (X, W, W) }}"
        for name in RECURRENT
    },
    "LRN": "(float[1,2,8,8] X) => (float[1,2,8,8] Y) { Y = LRN <size = 3> (X) }",
    "TopK": "(float[4] X, int64[1] k) => (float[2] Y) { Y, I = TopK (X, k) }",
    "DynamicQuantizeLinear": "(float[1,2] X) => (uint8[1,2] Y) { Y, S, Z = DynamicQuantizeLinear (X) }",
    "Shape": "(float[1,2] X) => (int64[2] Y) { Y = Shape (X) }",
    "DequantizeLinear": "(uint8[1,2] X, float S) => (float[1,2] Y) { Y = DequantizeLinear (X, S) }",
    "QuantizeLinear": "(float[1,2] X, float S) => (uint8[1,2] Y) { Y = QuantizeLinear (X, S) }",
    **{
        name: f"(float[1,2] X) => (float Y) {{ Y = {name} (X) }}"
        for name in ("ArgMax", "ArgMin", "Celu", "DFT", "Split")
    },
    **{
        name: f"(float[1,2] X, int64[1,2] I) => (float Y) {{ Y = {name} (X, I{', X' if 'Scatter' in name else ''}) }}"
        for name in ("GatherElements", "GatherND", "ScatterElements", "ScatterND")
    },
    "BatchNormalization": "(float[1,2] X) => (float[1,2] Y) { Y = BatchNormalization (X, X, X, X, X) }",
    "MaxUnpool": "(float[1,2] X, int64[1,2] I) => (float Y) { Y = MaxUnpool <kernel_shape = [2]> (X, I) }",
    "STFT": "(float[1,9] X, int64 s, float[4] w) => (float[A,B,C,2] Y) { Y = STFT (X, s, w) }",
    "ConvInteger": "(uint8[1,2,3,3] X, uint8[1,2,1,1] W) => (int32 Y) { Y = ConvInteger (X, W) }",
    "MatMulInteger": "(uint8[1,2] X, uint8[2,2] W) => (int32[1,2] Y) { Y = MatMulInteger (X, W) }",
    "MatMul": "(float[1,2] X, float[2,2] W) => (float[1,2] Y) { Y = MatMul (X, W) }",
    "Squeeze": "(float[1,2,3] X) => (float[2,3] Y) <int64[1] a = {0}> { Y = Squeeze (X, a) }",
    "Unsqueeze": "(float[2,3] X) => (float[1,2,3] Y) <int64[1] a = {0}> { Y = Unsqueeze (X, a) }",
    "Tile": "(float[1,2] X) => (float[1,4] Y) <int64[2] n = {1, 2}> { Y = Tile (X, n) }",
    "CumSum": "(float[1,2] X) => (float[1,2] Y) <int64 a = {1}> { Y = CumSum (X, a) }",
    "Expand": "(float[1,2] X) => (float[3,2] Y) <int64[2] s = {3, 2}> { Y = Expand (X, s) }",
    "PRelu": "(float[1,2] X) => (float[1,2] Y) { Y = PRelu (X, X) }",
    "Trilu": "(float[1,2,2] X) => (float[1,2,2] Y) { Y = Trilu (X) }",
    "If": "(bool C) => (float Y) { Y = If (C) <then_branch = t () => (float A) { A = Constant <value = float {1}> () },"
    " else_branch = e () => (float B) { B = Constant <value = float {2}> () }> }",
    "Loop": '(int64 n) => (float[A,2] Y) { Y = Loop (n, "") <body = b (int64 i, bool c) => (bool d, float[2] p) '
    "{ d = Identity (c) p = RandomNormal <shape = [2]> () }> }",
    "Scan": "(float[1,2] X) => (float[1,2] Y) { Y = Scan <num_scan_inputs = 1, "
    "body = b (float[2] A) => (float[2] B) { B = Neg (A) }> (X) }",
    **{name: f"(float[1,2] X) => (float[1,2] Y) {{ Y = {name} (X) }}" for name in ("Dropout", "Identity")},
    "Cast": "(float[1,2] X) => (double[1,2] Y) { Y = Cast <to = 11> (X) }",
    "Pow": "(float[1,2] X) => (float[1,2] Y) { Y = Pow (X, X) }",
    "Upsample": "(float[1,2] X) => (float[1,4] Y) <float[2] s = {1, 2}> { Y = Upsample (X, s) }",
}


def example(op_type: str) -> tuple[Scope, NodeProto]:
    opset = 9 if op_type == "Upsample" else 17
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}, "ai.onnx.ml" : 3]>\ng {EXAMPLES[op_type]}'
    )
    scope = next(iter(infer(Model(model))))
    return scope, scope.nodes[0]


def test_every_trait_is_one_that_a_fact_may_name() -> None:
    for op_type in EXAMPLES:
        traits = traits_of(*example(op_type))
        assert traits is not None
        for name, value in traits.items():
            assert value is None or value in TRAITS[name], (op_type, name, value)
