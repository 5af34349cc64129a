"""`padfix verify` and what it shares with `convert`: options of sources, probes alone, and what failures say."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

from padfix.cli.exits import run
from padfix.cli.group import cli

FIXTURES = Path(__file__).parents[2] / "fixtures"


def invoke(*arguments: object) -> int:
    return run(cli, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(FIXTURES / "onnx" / "same_cnn.onnx", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def text_model(text: str, path: str, *, names: tuple[str, ...] = ()) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}')
    for node, name in zip(model.graph.node, names, strict=False):
        node.name = name
    onnx.save(model, path)


def probe(model: str) -> None:
    graph = onnx.load(model).graph
    weights = {tensor.name for tensor in graph.initializer}
    rng = np.random.default_rng(1)
    arrays = {
        value.name: rng.random([each.dim_value or 9 for each in value.type.tensor_type.shape.dim]).astype(np.float32)
        for value in graph.input
        if value.name not in weights
    }
    np.savez("probe.npz", **arrays)


def test_a_difference_names_the_option_that_locates_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, slope in (("a", 0.1), ("b", 0.2)):
        text_model(f"g (float[1,8] x) => (float[1,8] y) {{ y = LeakyRelu<alpha={slope}>(x) }}", f"{name}.onnx")
    assert invoke("verify", "a.onnx", "b.onnx") == 1
    assert "hint: --locate names" in capsys.readouterr().err
    for arguments in (["--locate"], ["-q"]):
        assert invoke("verify", "a.onnx", "b.onnx", *arguments) == 1
        assert "hint" not in capsys.readouterr().err
    assert invoke("verify", "a.onnx", "a.onnx") == 0
    assert "hint" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["convert", "same_cnn.onnx", "-o", "out.onnx"], ["verify", *["same_cnn.onnx"] * 2]]
)
def test_probes_alone(folder: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(*command, "--probes-only") == 2
    assert "--probe beside --probes-only" in capsys.readouterr().err
    probe("same_cnn.onnx")
    assert invoke(*command, "--probe", "probe.npz", "--probes-only") == 0
    shown = capsys.readouterr().out
    assert ": 1 probe\n" in shown
    assert "note: Judged by the given probes alone (--probes-only)." in shown
    assert "Sizes run" not in shown
    assert invoke(*command, "--probe", "probe.npz") == 0
    assert "Judged by the given probes alone" not in capsys.readouterr().out


def test_what_given_probes_do_not_reach_is_not_judged(folder: Path) -> None:
    text_model("g (float[4] x) => (float[4] y) { y = Relu(x) }", "a.onnx")
    text_model("g (float[4] x) => (float[4] y) { y = Abs(x) }", "b.onnx")
    np.savez("probe.npz", x=np.arange(4, dtype=np.float32))
    assert invoke("verify", "a.onnx", "b.onnx", "--probe", "probe.npz", "--probes-only") == 0
    assert invoke("verify", "a.onnx", "b.onnx", "--probe", "probe.npz") == 1


GRAPH = (
    'g (float[1,1,5,5] x, float[1,1,3,3] w) => (float[1,1,5,5] y) { z = Relu(x) y = Conv<auto_pad="SAME_UPPER">(z, w) }'
)


def test_a_graph_that_the_runtime_refuses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text_model(GRAPH, "twice.onnx", names=("same", "same"))
    text_model(GRAPH, "once.onnx", names=("a", "b"))
    for command in (
        ["convert", "twice.onnx", "-o", "out.onnx"],
        ["verify", "twice.onnx", "once.onnx"],
        ["verify", "once.onnx", "twice.onnx"],
    ):
        assert invoke(*command) == 2
        said = capsys.readouterr().err
        assert "two nodes with same node name (same)" in said
        assert "custom operator" not in said
        assert said.count("twice.onnx") <= 1
        assert ("--no-verify" in said) is (command[0] == "convert"), "only what the command has"
    assert not Path("out.onnx").exists()
    assert invoke("convert", "twice.onnx", "-o", "out.onnx", "--reference", "spec") == 0
    assert "specification ran both models" in capsys.readouterr().out


@pytest.mark.tensorflow
def test_signatures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = FIXTURES / "tf" / "two_signatures"
    for command in (["inspect", source], ["verify", source, source]):
        assert invoke(*command) == 2
        assert "Choose with --signature." in capsys.readouterr().err
    assert invoke("inspect", source, "--signature", "enlarge") == 0
    assert "conv2d_transpose" in capsys.readouterr().out
    assert invoke("convert", source, "-o", "out.onnx", "--signature", "classify", "-q") == 0
    assert invoke("verify", source, "out.onnx", "--signature", "classify") == 0
    assert invoke("verify", "out.onnx", source, "--signature", "classify") == 0
    assert invoke("verify", source, source, "--signature", "classify") == 0


@pytest.mark.tensorflow
def test_constants(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tf = pytest.importorskip("tensorflow")
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [1, 4, 4, 2], name="x")
        slope = tf.compat.v1.placeholder(tf.float32, [], name="slope")
        tf.identity(tf.nn.relu(x) * slope, name="y")
    Path("frozen.pb").write_bytes(graph.as_graph_def().SerializeToString())
    assert invoke("convert", "frozen.pb", "-o", "out.onnx", "--constant", "slope=0.5", "-q") == 0
    assert invoke("verify", "frozen.pb", "out.onnx", "--constant", "slope=0.5") == 0
    assert invoke("verify", "frozen.pb", "out.onnx", "--constant", "slope=0.25") == 1
    capsys.readouterr()
    assert invoke("verify", "out.onnx", "out.onnx", "--constant", "slope=0.5") == 2
    assert "It is for SavedModels, frozen graphs and Keras files." in capsys.readouterr().err


def relu_and_abs() -> None:
    text_model("g (float[4] x) => (float[4] y) { y = Relu(x) }", "a.onnx")
    text_model("g (float[4] x) => (float[4] y) { y = Abs(x) }", "b.onnx")


def test_made_data_stays_within_the_range_that_the_user_gives(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    relu_and_abs()
    assert invoke("verify", "a.onnx", "b.onnx") == 1
    assert invoke("verify", "a.onnx", "b.onnx", "--range", "x=-1..1") == 1
    capsys.readouterr()
    assert invoke("verify", "a.onnx", "b.onnx", "--range", "x=0..2.5") == 0
    assert "note: Data was made for input 'x' within 0..2.5, as asked for (--range)." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("z=0..1", "There is no input 'z'."),
        ("x=1..0", "the lower one first"),
        ("x=1", "not of the form NAME=LOW..HIGH"),
        ("x=nan..1", "the lower one first"),
    ],
)
def test_a_range_that_means_nothing_is_refused(
    folder: Path, given: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    relu_and_abs()
    assert invoke("verify", "a.onnx", "b.onnx", "--range", given) == 2
    assert words in capsys.readouterr().err


def test_a_range_is_held_against_the_type_of_the_input(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text_model("g (uint8[4] x) => (uint8[4] y) { y = Identity(x) }", "a.onnx")
    assert invoke("verify", "a.onnx", "a.onnx", "--range", "x=0..255") == 0
    for given in ("x=0..256", "x=0..1.5"):
        assert invoke("verify", "a.onnx", "a.onnx", "--range", given) == 2
        assert "not one of uint8 numbers" in capsys.readouterr().err


def test_the_configuration_file_says_what_data_a_proof_is_made_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    relu_and_abs()
    Path("padfix.toml").write_text('range = { x = "0..1", other = "0..9" }')
    assert invoke("verify", "a.onnx", "b.onnx") == 0
    assert invoke("verify", "a.onnx", "b.onnx", "--range", "x=-1..1") == 1
    np.savez("probe.npz", x=np.arange(4, dtype=np.float32))
    Path("padfix.toml").write_text('probe = ["probe.npz"]\nprobes-only = true')
    capsys.readouterr()
    assert invoke("verify", "a.onnx", "b.onnx") == 0
    assert "Judged by the given probes alone (--probes-only)." in capsys.readouterr().out
    Path("padfix.toml").write_text("probes-only = true")
    assert invoke("verify", "a.onnx", "b.onnx") == 2
    assert "padfix.toml: probes-only asks for probes" in capsys.readouterr().err
    Path("padfix.toml").write_text('range = { x = "0-1" }')
    assert invoke("verify", "a.onnx", "b.onnx") == 2
    assert "range should say LOW..HIGH" in capsys.readouterr().err
