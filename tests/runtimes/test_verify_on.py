"""A model on a deployment runtime: what agrees, what differs, where, and what is kept of it."""

from __future__ import annotations

import importlib.util
import json
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
from padfix.proof.on_runtime import prove_on
from padfix.reports import runtime_verdicts
from padfix.runtimes import names, open_runtime
from padfix.runtimes.adapter import Runtime

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


class Odd:
    """ONNX Runtime with one operator that it gets wrong, or refuses."""

    label = "odd 1.0"

    def __init__(self, op_type: str, *, refuses: bool = False) -> None:
        self.op_type, self.refuses = op_type, refuses
        self._runtime = open_runtime("onnxruntime")

    def run(self, model: bytes, feeds: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray] | str:
        parsed = onnx.load_from_string(model)
        has_it = any(node.op_type == self.op_type for node in parsed.graph.node)
        if has_it and self.refuses:
            return f"no kernel for {self.op_type}"
        if has_it:
            for node in parsed.graph.node:
                if node.op_type == self.op_type:
                    node.op_type = {"Relu": "Abs", "Sigmoid": "Tanh"}[self.op_type]
        return self._runtime.run(parsed.SerializeToString(), feeds, shapes)


def test_a_runtime_that_computes_what_it_should(network: Path) -> None:
    verdict = padfix.verify_on(network, "onnxruntime")
    assert verdict.agrees
    assert verdict.runtime.startswith("onnxruntime 1.")
    assert {each.probe for each in verdict.outputs} == {"normal", "ramp", "negative"}
    assert not verdict.nodes


@pytest.mark.parametrize("op_type", ["Relu", "Sigmoid"])
def test_the_node_that_is_computed_otherwise_is_named_and_no_other(op_type: str, network: Path) -> None:
    verdict, repros = prove_on(Odd(op_type), network, "onnxruntime")
    assert not verdict.agrees
    assert [node.op_type for node in verdict.nodes] == [op_type]
    assert not verdict.nodes[0].refused
    assert verdict.nodes[0].max_abs_diff > verdict.nodes[0].allowed
    assert verdict.looked_at == 5
    assert [node.op_type for node in onnx.load_from_string(repros[0].model).graph.node] == [op_type]


def test_a_node_that_is_refused_is_named_in_the_runtimes_words(network: Path) -> None:
    verdict, _ = prove_on(Odd("MaxPool", refuses=True), network, "onnxruntime")
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
    assert folders == ["001-Reshape", "002-Conv", "003-Relu", "004-MaxPool", "005-Sigmoid"]
    for folder in folders:
        done = subprocess.run(
            [sys.executable, "-I", "show.py"],
            cwd=tmp_path / "kept" / folder,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "largest difference 0.0" in done.stdout  # of the honest runtime, which the script asks
        assert "padfix" not in (tmp_path / "kept" / folder / "show.py").read_text()


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
        ([str(network), str(network), "--on", "onnxruntime"], "takes one model"),
        ([str(network), str(network), "--keep-repro", str(tmp_path / "kept")], "about a runtime"),
        ([str(network), "--on", "onnxruntime", "--report", str(tmp_path / "x.html")], "as JSON"),
    ):
        assert run(cli, ["verify", *words]) == 2
        assert says in capsys.readouterr().err


def test_the_text_names_the_node(network: Path) -> None:
    verdict, _ = prove_on(Odd("Relu"), network, "onnxruntime")
    lines = runtime_verdicts.text("network.onnx", [verdict]).splitlines()
    assert lines[0].startswith("network.onnx on odd 1.0: NOT what it should compute: output 'Y' (")
    assert lines[1].startswith("  first  Relu '")
    assert len(lines) == 2
    refused, _ = prove_on(Odd("MaxPool", refuses=True), network, "onnxruntime")
    assert "on odd 1.0: refuses it: no kernel for MaxPool" in runtime_verdicts.text("network.onnx", [refused])


def test_what_can_not_be_asked(network: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no runtime 'onnxrunntime'"):
        padfix.verify_on(network, "onnxrunntime")
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(padfix.SourceError):
        padfix.verify_on(tmp_path / "text.onnx", "onnxruntime")
    for name in names():
        if name != "onnxruntime" and importlib.util.find_spec({"opencv": "cv2", "mnn": "MNN"}.get(name, name)) is None:
            with pytest.raises(ProofUnavailableError, match="is not installed") as caught:
                padfix.verify_on(network, name)
            assert caught.value.hint == f'pip install "padfix[{name}]"'
