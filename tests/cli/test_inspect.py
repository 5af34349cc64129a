"""`padfix inspect`, and what `convert` says of windows that the conversion itself wrote out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import onnx
import pytest
from click import Context

from padfix.cli.exits import run
from padfix.cli.group import cli


def invoke(*arguments: object) -> int:
    return run(cli, [str(argument) for argument in arguments])


def saved(text: str, opset: int = 18) -> str:
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}'), "model.onnx")
    return "model.onnx"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("resize", "opset", "words"),
    [
        ('Resize<mode="linear">(x, , s)', 18, "linear half_pixel scales 1,1,2,2"),
        (
            'Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , , n)',
            18,
            "nearest asymmetric floor sizes 1,1,12,9",
        ),
        ('Resize<mode="cubic", axes=[2, 3]>(x, , , given)', 18, "cubic half_pixel sizes ?,?"),
        ('Upsample<mode="nearest">(x, s)', 9, "nearest asymmetric scales 1,1,2,2"),
    ],
)
def test_resizes(resize: str, opset: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = saved(
        f"""g (float[1,1,6,6] x, int64[2] given) => (float[a,b,c,d] y)
        <float[4] s = {{1, 1, 2, 2}}, int64[4] n = {{1, 1, 12, 9}}> {{ y = {resize} }}""",
        opset,
    )
    assert invoke("inspect", model) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.endswith("RESAMPLING")
    assert row.endswith(words)
    assert invoke("inspect", model, "--format", "json") == 0
    (record,) = json.loads(capsys.readouterr().out)["operators"]
    assert [record["mode"], record["coordinates"]] == words.split()[:2]


ASYMMETRIC = "pads=[0,0,1,1], strides=[2,2]"


@pytest.mark.parametrize("operator", [f"Conv<{ASYMMETRIC}>(x, w)", f"MaxPool<kernel_shape=[3,3], {ASYMMETRIC}>(x)"])
def test_the_pad_that_a_conversion_wrote(operator: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = saved(f"g (float[1,1,6,6] x, float[1,1,3,3] w) => (float[1,1,3,3] y) {{ y = {operator} }}")
    assert invoke("convert", "--in-place", "--pads", "node", model, "-q") == 0
    assert invoke("inspect", model) == 0
    shown = capsys.readouterr().out
    assert "explicit 0,0,0,0 behind Pad 0,0,1,1" in shown
    assert invoke("inspect", model, "--format", "json") == 0
    (record,) = json.loads(capsys.readouterr().out)["operators"]
    assert record["pads"] == record["pad_before"] == [0, 0, 1, 1]


def test_a_pad_of_the_run_time(capsys: pytest.CaptureFixture[str]) -> None:
    model = saved(
        """g (float[1,1,h,w] x, float[1,1,3,3] k) => (float[1,1,a,b] y) {
            y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(x, k)
        }"""
    )
    assert invoke("convert", "--in-place", model, "-q") == 0
    assert invoke("inspect", model) == 0
    assert "behind Pad ?,?,?,?  ?,?,?,?" in capsys.readouterr().out


@pytest.mark.tensorflow
def test_windows_that_the_conversion_wrote_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tf = pytest.importorskip("tensorflow")
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [1, 8, 8, 3], name="x")
        first = tf.nn.relu(tf.nn.conv2d(x, tf.ones([3, 3, 3, 4]), 2, "SAME"))
        second = tf.nn.relu(tf.nn.conv2d(first, tf.ones([3, 3, 4, 4]), 1, "SAME"))
        tf.nn.max_pool2d(second, 2, 2, "VALID", name="y")
    (folder / "frozen.pb").write_bytes(graph.as_graph_def().SerializeToString())
    assert invoke("convert", "frozen.pb", "-o", "out.onnx", "--report", "report.json") == 0
    shown = capsys.readouterr().out
    assert "rewrote  nothing; the conversion left 3 windows explicit, 1 of them asymmetric\n" in shown
    assert json.loads((folder / "report.json").read_text())["windows"] == {"number": 3, "asymmetric": 1}


def test_sizes_that_the_user_fixes(capsys: pytest.CaptureFixture[str]) -> None:
    model = saved(
        """g (float[1,1,h,w] x, float[1,1,3,3] k) => (float[1,1,a,b] y) {
            y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(x, k)
        }"""
    )
    assert invoke("inspect", model) == 0
    assert "?,?,?,?" in capsys.readouterr().out
    assert invoke("inspect", model, "--shape", "x=1,1,8,9") == 0
    assert "0,1,1,1" in capsys.readouterr().out
    assert invoke("inspect", model, "--shape", "nothing=1") == 2


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["quickstart/small_cnn.pb", "tf/two_signatures"])
def test_sizes_of_tensorflow_sources(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    fixture = Path(__file__).parents[2] / "fixtures" / name
    if name.endswith(".pb"):
        assert invoke("inspect", fixture, "--shape", "image=1,8,9,3") == 0
        assert "2,2      1,1        SAME     0,1,1,1" in capsys.readouterr().out
    signature = [] if name.endswith(".pb") else ["--signature", "classify"]
    assert invoke("inspect", fixture, *signature, "--shape", "nothing=1,8,9,3") == 2
    assert "nothing" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["inspect"], ["convert", "-o", "result.onnx"]], ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("onnx/same_cnn.onnx", "--signature"),
        ("onnx/same_cnn.onnx", "--tag"),
        pytest.param("quickstart/small_cnn.pb", "--signature", marks=pytest.mark.tensorflow),
        pytest.param("tf/two_outputs.keras", "--tag", marks=pytest.mark.tensorflow),
    ],
)
def test_what_has_no_meaning_for_this_kind_of_file(
    name: str,
    option: str,
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    fixture = Path(__file__).parents[2] / "fixtures" / name
    assert invoke(*command, fixture, option, "serve") == 2
    told = capsys.readouterr().err
    assert f"{option} is not for " in told
    assert "SavedModels" in told


def test_hints_name_only_options_that_the_command_has() -> None:
    """What is said by rooms that several commands enter: sources by all three, the proof by two."""
    root = Path(__file__).parents[2] / "padfix"
    known = {}
    for name in ("convert", "verify", "inspect"):
        with Context(cli) as context:
            command = cli.get_command(context, name)
        assert command is not None
        known[name] = {option for each in command.params for option in each.opts}
    for room, commands in (("sources", ("convert", "verify")), ("proof", ("convert", "verify"))):
        for file in (root / room).rglob("*.py"):
            named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", file.read_text(encoding="utf-8")))
            for command in commands:
                assert named <= known[command], (file, command)
    for name in ("keras_file", "keras_safety", "side_effects"):
        hints = re.findall(r"HINT = .*", (root / "sources" / f"{name}.py").read_text(encoding="utf-8"))
        assert set(re.findall(r"--[a-z][a-z-]+", " ".join(hints))) <= known["inspect"]
    assert {"--signature", "--tag", "--custom"} <= known["inspect"]
