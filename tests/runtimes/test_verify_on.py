"""A model on a deployment runtime: what agrees, what differs, where, and what is kept of it."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import onnx
import onnx.parser
import pytest

import padfix
from padfix.cli.exits import run
from padfix.cli.group import cli
from padfix.errors import ProofUnavailableError, UsageError
from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.proof.on_runtime import Repro, prove_on
from padfix.reports import proof_text
from padfix.results import RuntimesReport
from padfix.runtimes import Request, names, open_runtime
from padfix.runtimes.adapter import Runtime, said
from padfix.runtimes.node_process import runner
from padfix.runtimes.repro import write_repro

NETWORK = """<ir_version: 8, opset_import: ["" : 17]>
network (float[N,3,12,10] X) => (float[N,4,6,5] Y)
{
    W = Constant <value_floats = [%s]> ()
    shape = Constant <value_ints = [4, 3, 3, 3]> ()
    kernel = Reshape (W, shape)
    convolved = Conv <pads = [1, 1, 1, 1]> (X, kernel)
    activated = Relu (convolved)
    pooled = MaxPool <kernel_shape = [3, 3], pads = [0, 0, 1, 1], strides = [2, 2]> (activated)
    Y = Sigmoid (pooled)
}
""".replace("%s", ", ".join(f"{each:.3f}" for each in np.random.default_rng(3).standard_normal(108)))


@pytest.fixture
def network(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(NETWORK), tmp_path / "network.onnx")
    return tmp_path / "network.onnx"


def proven(runtime: Any, model: Path) -> tuple[padfix.RuntimeVerdict, list[Repro]]:
    executor = OnnxRuntimeExecutor(model, optimised=False)
    return prove_on(runtime, executor, executor, model)


class Odd:
    """ONNX Runtime with one operator that it gets wrong, or refuses."""

    label = "odd 1.0"
    rounding = 1.0

    def __init__(self, op_type: str, *, refuses: bool = False) -> None:
        self.op_type, self.refuses = op_type, refuses
        self._runtime = open_runtime("onnxruntime")

    def close(self) -> None:
        """It has no process to end."""

    def run(self, model: bytes, feeds: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray] | str:
        parsed = onnx.load_from_string(model)
        has_it = any(node.op_type == self.op_type for node in parsed.graph.node)
        if has_it and self.refuses:
            return f"no kernel for {self.op_type}"
        if has_it:
            for node in parsed.graph.node:
                if node.op_type == self.op_type:
                    node.op_type = {"Relu": "Abs", "Sigmoid": "Tanh", "Celu": "Elu"}[self.op_type]
        return self._runtime.run(parsed.SerializeToString(), feeds, shapes)


def test_a_runtime_that_computes_what_it_should(network: Path) -> None:
    verdict = padfix.verify_on(network, "onnxruntime")
    assert verdict.agrees
    assert verdict.runtime.startswith("onnxruntime 1.")
    assert {each.probe for each in verdict.outputs} == {"normal", "ramp", "negative"}
    assert not verdict.nodes


@pytest.mark.parametrize("op_type", ["Relu", "Sigmoid"])
def test_the_node_that_is_computed_otherwise_is_named_and_no_other(op_type: str, network: Path) -> None:
    verdict, repros = proven(Odd(op_type), network)
    assert not verdict.agrees
    assert [node.op_type for node in verdict.nodes] == [op_type]
    assert not verdict.nodes[0].refused
    assert verdict.nodes[0].max_abs_diff > verdict.nodes[0].allowed
    assert verdict.looked_at == 4  # what computes the kernel from constants is constant
    assert [node.op_type for node in onnx.load_from_string(repros[0].model).graph.node] == [op_type]


def test_a_node_behind_a_sequence_is_named(tmp_path: Path) -> None:
    graph = """(float[3,6] X) => (float[3,6] Y) <int64[3] s = {1, 2, 3}, int64 one = {1}, int64 two = {2}> {
        E = Exp (X) Q = SplitToSequence <axis = 1> (E, s) A = SequenceAt (Q, one) B = SequenceAt (Q, two)
        N = Neg (B) R = Relu (N) C = Concat <axis = 1> (A, R) D = Concat <axis = 1> (C, one_column) Y = Tanh (D) }"""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> g {graph}')
    column = np.ones((3, 1), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(column, "one_column"))
    onnx.save(model, tmp_path / "sequences.onnx")
    verdict, _ = proven(Odd("Relu"), tmp_path / "sequences.onnx")
    assert [node.op_type for node in verdict.nodes] == ["Relu"]
    assert verdict.looked_at == 6  # of the sequence, and of what reads it, no numbers are known


def test_a_node_that_is_refused_is_named_in_the_runtimes_words(network: Path) -> None:
    verdict, _ = proven(Odd("MaxPool", refuses=True), network)
    assert verdict.refused
    assert [(node.op_type, node.refused) for node in verdict.nodes] == [("MaxPool", "no kernel for MaxPool")]


def test_what_is_kept_shows_the_fault_without_padfix(
    network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Runtime.run

    def wrong(self: Runtime, model: bytes, feeds: Mapping[str, Any], shapes: Any) -> Any:
        found = honest(self, model, feeds, shapes)
        return found if isinstance(found, str) else [array + 1 for array in found]

    monkeypatch.setattr(Runtime, "run", wrong)
    verdict = padfix.verify_on(network, "onnxruntime", keep_repro=tmp_path / "kept")
    assert len(verdict.nodes) == verdict.looked_at
    folders = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert folders == ["001-Conv", "002-Relu", "003-MaxPool", "004-Sigmoid"]
    for folder in folders:
        done = subprocess.run(
            [sys.executable, "-I", "show.py"],
            cwd=tmp_path / "kept" / folder,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "largest difference [0." in done.stdout  # of the honest runtime, which the script asks
        assert "padfix" not in (tmp_path / "kept" / folder / "show.py").read_text()


def test_a_script_has_all_that_it_names(tmp_path: Path) -> None:
    for name in names():
        module = f"padfix.runtimes.on_{name.replace('-', '_')}"
        write_repro(tmp_path / name, Runtime(name, module, "1.0"), "A fault", b"", {}, np.zeros(1))
        script = (tmp_path / name / "show.py").read_text()
        assert all(
            (tmp_path / name / each).exists() for each in re.findall(r'\(__file__\)\.with_name\("(\S+)"\)', script)
        )
    words = ["ruff", "check", "--isolated", "--select=F821", str(tmp_path)]
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_command(network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    assert run(cli, ["verify", str(network), "--on", "onnxruntime", "--report", str(report)]) == 0
    assert "computes what it should (3 probes" in capsys.readouterr().out
    document = json.loads(report.read_text())
    schema = Path(padfix.__file__).parent / "schemas" / "padfix-1.schema.json"
    jsonschema.validate(document, json.loads(schema.read_text()))
    assert document["runtimes"][0]["agrees"] is True
    for words, says in (
        ([str(network)], "no second model"),
        ([str(network), str(network), "--keep-repro", str(tmp_path / "kept")], "about a runtime"),
    ):
        assert run(cli, ["verify", *words]) == 2
        assert says in capsys.readouterr().err


@pytest.fixture
def own_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put a distribution of somebody else's on the path, with a runtime that computes Tanh for Sigmoid."""
    folder = tmp_path / "site"
    (folder / "theirs-2.5.dist-info").mkdir(parents=True)
    (folder / "theirs-2.5.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 2.5\n")
    (folder / "theirs-2.5.dist-info" / "entry_points.txt").write_text("[padfix.runtimes]\ntheirs = theirs_runtime\n")
    (folder / "theirs_runtime.py").write_text(
        """
import onnx
import onnxruntime

def load():
    def run(request):
        model = onnx.load_from_string(request.model)
        for node in model.graph.node:
            node.op_type = {"Sigmoid": "Tanh"}.get(node.op_type, node.op_type)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, dict(request.feeds))
    return run
"""
    )
    monkeypatch.syspath_prepend(folder)
    return "theirs"


def test_a_runtime_of_another_package(own_runtime: str, network: Path) -> None:
    assert own_runtime in names()
    verdict = padfix.verify_on(network, own_runtime)
    assert verdict.runtime == "theirs 2.5"
    assert [node.op_type for node in verdict.nodes] == ["Sigmoid"]


def changed(network: Path, op_type: str, becomes: str) -> Path:
    """Return the network with its nodes of one type made another."""
    model = onnx.load(network)
    for node in model.graph.node:
        node.op_type = becomes if node.op_type == op_type else node.op_type
    onnx.save(model, network.with_name("changed.onnx"))
    return network.with_name("changed.onnx")


def test_one_model_is_judged_by_the_numbers_of_another(own_runtime: str, network: Path) -> None:
    other = changed(network, "Sigmoid", "Tanh")
    # What this runtime makes of the network is what ONNX Runtime makes of the other one.
    verdict = padfix.verify_on(network, own_runtime, original=other)
    assert all(each.agrees for each in verdict.outputs)
    verdict = padfix.verify_on(network, own_runtime, original=network)
    assert [node.op_type for node in verdict.nodes] == ["Sigmoid"]
    verdict = padfix.verify_on(other, "onnxruntime", original=network)
    assert not verdict.agrees
    assert not verdict.nodes  # the runtime computes what this model means, which is another thing
    assert "not equal to the original" in verdict.notes[0]


@pytest.mark.parametrize("suffix", ["json", "md", "html"])
def test_two_models_on_two_runtimes(
    suffix: str, own_runtime: str, network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / f"report.{suffix}"
    words = ["verify", str(network), str(network), "--on", "onnxruntime", "--on", own_runtime]
    assert run(cli, [*words, "--report", str(report)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "on onnxruntime 1." in lines[0]
    assert "computes what it should" in lines[0]
    assert "on theirs 2.5: NOT what it should compute" in lines[1]
    assert "first  Sigmoid" in lines[2]
    told = report.read_text()
    if suffix == "json":
        document = json.loads(told)
        assert [each["agrees"] for each in document["runtimes"]] == [True, False]
        told = document["runtimes"][1]["nodes"][0]["op_type"]
    assert "Sigmoid" in told
    assert run(cli, ["verify", str(network), "--on", "onnxruntime", "--on", "nobody"]) == 2
    assert "no runtime 'nobody'" in capsys.readouterr().err


def test_a_result_is_written_only_where_the_runtime_is_right(
    own_runtime: str, network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, report = tmp_path / "out.onnx", tmp_path / "report.json"
    words = ["convert", str(network), "-o", str(output), "--report", str(report), "--prove-on"]
    assert run(cli, [*words, own_runtime]) == 1
    captured = capsys.readouterr()
    assert not output.exists()
    assert "theirs 2.5 does not compute what the result means" in captured.err
    assert "Sigmoid" in captured.err
    assert json.loads(report.read_text())["runtimes"][0]["nodes"][0]["op_type"] == "Sigmoid"
    assert run(cli, [*words, "onnxruntime"]) == 0
    assert output.exists()
    assert "the result on onnxruntime 1." in capsys.readouterr().out
    document = json.loads(report.read_text())
    schema = Path(padfix.__file__).parent / "schemas" / "padfix-1.schema.json"
    jsonschema.validate(document, json.loads(schema.read_text()))
    assert document["runtimes"][0]["agrees"]


def test_the_configuration_file_names_runtimes(
    own_runtime: str, network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "padfix.toml").write_text('prove-on = ["theirs"]\n')
    assert run(cli, ["convert", str(network), "-o", "out.onnx"]) == 1
    assert run(cli, ["verify", str(network), str(network)]) == 0  # which it is not about
    assert run(cli, ["convert", str(network), "-o", "out.onnx", "--prove-on", "onnxruntime"]) == 0


def test_a_runtime_that_is_not_there_ends_the_conversion_before_it_begins(network: Path, tmp_path: Path) -> None:
    missing = next(
        (each for each in ("qnn", "tvm", "tract", "mnn") if importlib.util.find_spec(_package(each)) is None), None
    )
    if missing is not None:
        with pytest.raises(ProofUnavailableError, match="is not installed") as caught:
            padfix.convert(network, tmp_path / "out.onnx", prove_on=[missing])
        assert caught.value.hint == f'pip install "padfix[{missing}]"'
    with pytest.raises(UsageError, match="without proof"):
        padfix.convert(network, tmp_path / "out.onnx", prove_on=["onnxruntime"], verify=False)
    assert not (tmp_path / "out.onnx").exists()


class Fusing(Odd):
    """A runtime that gets one operator wrong behind another, and nowhere else."""

    def close(self) -> None:
        """It has no process to end."""

    def run(self, model: bytes, feeds: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray] | str:
        parsed = onnx.load_from_string(model)
        made = {name: node.op_type for node in parsed.graph.node for name in node.output}
        for node in parsed.graph.node:
            if node.op_type == "MaxPool" and made.get(node.input[0]) == self.op_type:
                del node.attribute[:]
                node.attribute.extend(
                    onnx.parser.parse_node("Y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (X)").attribute
                )
        return self._runtime.run(parsed.SerializeToString(), feeds, shapes)


def test_a_node_that_is_wrong_only_behind_another_is_named_with_it(network: Path) -> None:
    verdict, repros = proven(Fusing("Relu"), network)
    (node,) = verdict.nodes
    assert (node.op_type, node.together) == ("MaxPool", ("#4",))
    assert [each.op_type for each in onnx.load_from_string(repros[0].model).graph.node] == ["Relu", "MaxPool"]


def test_a_node_whose_fault_the_outputs_hide_is_named(network: Path) -> None:
    model = onnx.load(network)
    model.graph.node[-1].output[0] = "squeezed"
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(1e-6), "little"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(1), "one"))
    model.graph.node.append(onnx.helper.make_node("Mul", ["squeezed", "little"], ["hidden"]))
    model.graph.node.append(onnx.helper.make_node("Add", ["hidden", "one"], ["Y"]))
    onnx.save(model, network)
    verdict, _ = proven(Odd("Sigmoid"), network)
    assert all(each.agrees for each in verdict.outputs)
    assert not verdict.agrees
    assert [node.op_type for node in verdict.nodes] == ["Sigmoid"]
    assert "the outputs hide it" in proof_text.report(RuntimesReport("network.onnx", runtimes=(verdict,)))


def test_a_model_whose_weights_are_inputs_too(network: Path) -> None:
    """As older exporters write it."""
    model = onnx.load(network)
    weights = onnx.numpy_helper.from_array(np.ones((1, 4, 1, 1), np.float32), "weights")
    model.graph.initializer.append(weights)
    model.graph.input.append(onnx.helper.make_tensor_value_info("weights", weights.data_type, weights.dims))
    model.graph.node[-1].output[0] = "squeezed"
    model.graph.node.append(onnx.helper.make_node("Mul", ["squeezed", "weights"], ["Y"]))
    onnx.save(model, network)
    verdict, _ = proven(Odd("Sigmoid"), network)
    assert [node.op_type for node in verdict.nodes] == ["Sigmoid"]


class Listening(Odd):
    """A runtime that keeps the sizes that it is given."""

    def __init__(self) -> None:
        super().__init__("Relu")
        self.sizes: set[tuple[int, ...]] = set()

    def close(self) -> None:
        """It has no process to end."""

    def run(self, model: bytes, feeds: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray] | str:
        self.sizes |= {array.shape for array in feeds.values()}
        return super().run(model, feeds, shapes)


def test_no_window_is_longer_than_what_it_reads(tmp_path: Path) -> None:
    """ONNX Runtime gives such a pool one element, and others refuse it."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
    network (float[N,3,H,W] X) => (float[N,3,K,L] Y)
    {
        few = AveragePool <kernel_shape = [32, 32], strides = [32, 32]> (X)
        Y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (few)
    }
    """
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    runtime = Listening()
    verdict, _ = proven(runtime, tmp_path / "model.onnx")
    assert verdict.agrees
    assert min(min(size[2:]) for size in runtime.sizes) >= 64


class Imprecise(Odd):
    """A runtime whose numbers are off by little."""

    def close(self) -> None:
        """It has no process to end."""

    def run(self, model: bytes, feeds: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray] | str:
        found = self._runtime.run(model, feeds, shapes)
        return found if isinstance(found, str) else [array + np.float32(1e-8) for array in found]


def test_an_output_is_as_large_as_on_all_data(tmp_path: Path) -> None:
    """On negative data this one is 0 all over."""
    text = '<ir_version: 8, opset_import: ["" : 17]> network (float[1,3,8,8] X) => (float[1,3,8,8] Y) { Y = Relu (X) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    verdict, _ = proven(Imprecise("Relu"), tmp_path / "model.onnx")
    assert all(each.agrees for each in verdict.outputs)


def test_a_fault_with_small_numbers_is_looked_for_on_data_that_show_it(tmp_path: Path) -> None:
    """On ramps the squares are so large that the fault is less than what rounding explains."""
    text = """<ir_version: 8, opset_import: ["" : 17]> network (float[1,3,8,8] X) => (float[1,3,8,8] Y)
    {
        half = Constant <value_float = 0.5> ()
        squares = Mul (X, X)
        lower = Sub (squares, half)
        Y = Celu <alpha = 0.4> (lower)
    }
    """
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    verdict, _ = proven(Odd("Celu"), tmp_path / "model.onnx")
    assert not verdict.agrees
    assert [(node.op_type, node.probe) for node in verdict.nodes] == [("Celu", "normal")]


class Simple(Odd):
    """A runtime that refuses one operator wherever it stands."""

    def close(self) -> None:
        """It has no process to end."""

    def run(self, model: bytes, feeds: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray] | str:
        if any(node.op_type == self.op_type for node in onnx.load_from_string(model).graph.node):
            return f"no kernel for {self.op_type}"
        return self._runtime.run(model, feeds, shapes)


def test_constants_that_are_computed_from_an_inputs_lengths(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    network (float[2,3] X) => (float[2,3] Y)
    {
        activated = Relu (X)
        shape = Shape (X)
        zeros = ConstantOfShape (shape)
        Y = Add (activated, zeros)
    }
    """
    onnx.save(onnx.parser.parse_model(text), tmp_path / "network.onnx")
    verdict, _ = proven(Simple("ConstantOfShape"), tmp_path / "network.onnx")
    (node,) = verdict.nodes
    assert (node.op_type, node.together) == ("Add", ("#1", "#2"))
    assert node.refused == "no kernel for ConstantOfShape"


class Rounding(Odd):
    """A runtime that gets one operator wrong, and rounds what Sigmoid gives more than others do."""

    def close(self) -> None:
        """It has no process to end."""

    def run(self, model: bytes, feeds: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray] | str:
        found = super().run(model, feeds, shapes)
        last = onnx.load_from_string(model).graph.node[-1]
        rounds = last.op_type == "Sigmoid" and not isinstance(found, str)
        return [*found[:-1], found[-1] * np.float32(1.0003)] if rounds else found


def test_rounding_behind_a_fault_is_none(network: Path) -> None:
    verdict, _ = proven(Rounding("Relu"), network)
    assert [node.op_type for node in verdict.nodes] == ["Relu"]


class Standing(Odd):
    """A runtime that misreads an operator by itself, and not within a network."""

    def close(self) -> None:
        """It has no process to end."""

    def run(self, model: bytes, feeds: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray] | str:
        found = super().run(model, feeds, shapes)
        is_without = all(node.op_type != "Conv" for node in onnx.load_from_string(model).graph.node)
        return [array.swapaxes(-1, -2) for array in found] if is_without and not isinstance(found, str) else found


def test_a_node_that_is_right_within_the_network_is_not_named(network: Path) -> None:
    assert proven(Standing("LSTM"), network)[0].agrees
    verdict, _ = proven(Standing("Sigmoid"), network)
    assert [node.op_type for node in verdict.nodes] == ["Sigmoid"]


def test_the_text_names_the_node(network: Path) -> None:
    verdict, _ = proven(Odd("Relu"), network)
    lines = proof_text.report(RuntimesReport("network.onnx", runtimes=(verdict,))).splitlines()
    assert lines[0].startswith("network.onnx on odd 1.0: NOT what it should compute: output 'Y' (")
    assert lines[1].startswith("  first  Relu '")
    assert len(lines) == 2
    refused, _ = proven(Odd("MaxPool", refuses=True), network)
    assert "on odd 1.0: refuses it: no kernel for MaxPool" in proof_text.report(
        RuntimesReport("network.onnx", runtimes=(refused,))
    )


def test_what_can_not_be_asked(network: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no runtime 'onnxrunntime'"):
        padfix.verify_on(network, "onnxrunntime")
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(padfix.SourceError):
        padfix.verify_on(tmp_path / "text.onnx", "onnxruntime")
    for name in names():
        if (
            name not in ("onnxruntime", "onnxruntime-web", "onnxruntime-webgpu")
            and importlib.util.find_spec({"opencv": "cv2", "mnn": "MNN", "qnn": "onnxruntime_qnn"}.get(name, name))
            is None
        ):
            with pytest.raises(ProofUnavailableError, match="is not installed") as caught:
                padfix.verify_on(network, name)
            assert caught.value.hint == f'pip install "padfix[{name}]"'


def _package(runtime: str) -> str:
    return {"opencv": "cv2", "mnn": "MNN", "qnn": "onnxruntime_qnn"}.get(runtime, runtime)


@pytest.mark.parametrize("name", ["opencv", "mnn"])
def test_a_real_runtime_is_caught_and_helped(name: str, network: Path, tmp_path: Path) -> None:
    """Both pad SAME_LOWER as if it were SAME_UPPER, in one version or all."""
    try:
        open_runtime(name).close()
    except ProofUnavailableError as error:
        pytest.skip(error.message)
    model = onnx.load(network)
    (pool,) = (node for node in model.graph.node if node.op_type == "MaxPool")
    lower = onnx.parser.parse_node('Y = MaxPool <auto_pad = "SAME_LOWER", kernel_shape = [2, 2]> (X)')
    pool.ClearField("attribute")
    pool.attribute.extend(lower.attribute)
    for value, lengths in ((model.graph.input[0], (1, 3, 12, 10)), (model.graph.output[0], (1, 4, 12, 10))):
        value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, onnx.TensorProto.FLOAT, lengths))
    onnx.save(model, network)
    verdict = padfix.verify_on(network, name)
    assert not verdict.agrees
    assert [node.op_type for node in verdict.nodes] == ["MaxPool"]
    report = padfix.convert(network, tmp_path / "out.onnx", target=name, prove_on=[name])
    assert [each.agrees for each in report.runtimes] == [True]


@pytest.mark.parametrize(
    ("name", "packages"), [("onnxruntime-web", "onnxruntime-web"), ("onnxruntime-webgpu", "onnxruntime-web webgpu")]
)
def test_onnxruntime_web(
    name: str, packages: str, network: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert name in names()
    try:
        verdict = padfix.verify_on(network, name)
    except ProofUnavailableError as error:
        assert f"npm install {packages}, and let PADFIX_NODE_MODULES" in str(error.hint)
        pytest.skip(error.message)
    assert verdict.agrees
    assert verdict.runtime.startswith(f"{name} 1.")
    monkeypatch.setenv("PADFIX_NODE_MODULES", str(tmp_path))
    with pytest.raises(ProofUnavailableError, match="not installed"):
        open_runtime(name)


_PRETENDED = """
exports.env = { wasm: {} };
exports.Tensor = class { constructor(type, data, dims) { Object.assign(this, { type, data, dims }); } };
exports.InferenceSession = { async create(bytes) {
  if (bytes.length % 2) throw new Error("an odd number of bytes");
  if (bytes.length == 2) process.exit(3);
  if (bytes.length == 6) { console.error("out of memory"); process.exit(4); }
  console.log("nobody reads this");
  return { outputNames: ["y"], release() {}, async run({ x }) { return { y: x }; } };
} };
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
def test_node_is_asked_again_behind_what_it_refused_and_behind_its_end(tmp_path: Path) -> None:
    (tmp_path / "ort.cjs").write_text(_PRETENDED)
    run = runner(tmp_path / "ort.cjs", "wasm")
    data = np.arange(6, dtype=np.float32).reshape(2, 3)

    def ask(model: bytes) -> list[np.ndarray]:
        return run(Request(model, {"x": data}, [(2, 3)]))

    assert [each.tolist() for each in ask(b"four")] == [data.tolist()]
    with pytest.raises(RuntimeError, match="an odd number of bytes"):
        ask(b"odd")
    with pytest.raises(RuntimeError, match="Node ended"):
        ask(b"ab")
    assert [each.tolist() for each in ask(b"four")] == [data.tolist()]
    with pytest.raises(RuntimeError, match="an odd number of bytes"):
        ask(b"odd")
    with pytest.raises(RuntimeError, match=r"^out of memory$"):
        ask(b"abcdef")
    assert [each.tolist() for each in ask(b"four")] == [data.tolist()]
    with pytest.raises(RuntimeError, match="no_such_file"):
        runner(tmp_path / "no_such_file.cjs", "wasm")


def test_a_runtime_that_can_not_be_loaded_leaves_the_question_open(
    network: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "on_nothing.py").write_text("def load():\n    raise OSError('there is no card here')\n")
    monkeypatch.syspath_prepend(tmp_path)
    runtime = Runtime("nothing", "on_nothing", "1.0")
    with pytest.raises(ProofUnavailableError, match=r"nothing 1\.0 can't be used here: there is no card here"):
        proven(runtime, network)


def test_of_a_stack_the_words_before_it_are_said() -> None:
    words = 'Failed analyse for node #3 "c"\n\nCaused by:\n    0: Unifying\n\nStack backtrace:\n   9: <unknown>\n'
    assert said(words) == 'Failed analyse for node #3 "c"'
    assert said("\x1b[31mERROR:\x1b[0m Invalid auto_pad attribute") == "ERROR: Invalid auto_pad attribute"
