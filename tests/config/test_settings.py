"""Configuration files: what they say reaches `padfix check`, and what they can't say is an error with a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from padfix import errors
from padfix.config import settings as config
from padfix.config.settings import Config
from padfix.results import Finding, Severity

EXAMPLE = """
select = ["PF1", "legacy-resize"]
ignore = ["PF103"]
fail-on = "error"
target = "onnx"
exclude = ["**/scratch/*"]
baseline = "padfix-baseline.json"
probe = ["calibration"]
probes-only = true
prove-on = ["opencv", "ncnn"]

[range]
"tokens" = "0..30521"
"x" = "-1..1.5"

[per-file-ignores]
"old/**/*.onnx" = ["PF1"]
"*.legacy.onnx" = ["PF202"]

[per-node-ignores]
"main/stem*" = ["PF101"]
"""


def finding(rule: str = "PF101", node: str = "conv", graph: str = "main") -> Finding:
    return Finding(rule, "implicit-same-padding", Severity.WARNING, graph, node, "Conv", "m")


def written(folder: Path, text: str, name: str = "padfix.toml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_everything_that_a_file_can_say(tmp_path: Path) -> None:
    path = written(tmp_path, EXAMPLE)
    assert config.load(path) == Config(
        select=("PF1", "legacy-resize"),
        ignore=("PF103",),
        fail_on=Severity.ERROR,
        target="onnx",
        exclude=("**/scratch/*",),
        baseline="padfix-baseline.json",
        per_file_ignores={"old/**/*.onnx": ("PF1",), "*.legacy.onnx": ("PF202",)},
        per_node_ignores={"main/stem*": ("PF101",)},
        probes=("calibration",),
        probes_only=True,
        prove_on=("opencv", "ncnn"),
        ranges={"tokens": (0, 30521), "x": (-1, 1.5)},
        folder=tmp_path,
        path=path,
    )
    assert config.load(path).rule_words() == ("PF1", "legacy-resize", "PF103", "PF202", "PF101")
    assert set(config.KEYS) == {
        line.split()[0].strip("[]") for line in EXAMPLE.splitlines() if line[:1] not in ("", '"')
    }


def test_an_empty_file_says_the_defaults(tmp_path: Path) -> None:
    path = written(tmp_path, "")
    assert config.load(path) == Config(folder=tmp_path, path=path)


def test_the_nearest_file_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    project = written(tmp_path, "[tool.padfix]\nignore = ['PF1']\n", "pyproject.toml")
    assert config.find(inner) == project
    assert config.load(project).ignore == ("PF1",)
    written(tmp_path / "a", "[tool.other]\n", "pyproject.toml")
    assert config.find(inner) == project, "a project file without the section is passed over"
    own = written(tmp_path / "a", "")
    assert config.find(inner) == own
    written(tmp_path / "a", "[tool.padfix]\n", "pyproject.toml")
    assert config.find(inner) == own, "padfix.toml comes first"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("failon = 'error'", "there is no setting 'failon'", "Did you mean 'fail-on'?"),
        ("zzzzzz = 1", "there is no setting 'zzzzzz'", "Known: select, ignore"),
        ("fail-on = 'errors'", "fail-on is 'errors'", "Did you mean 'error'?"),
        ("fail-on = 3", "fail-on should be a string, not 3", ""),
        ("select = 'PF101'", "select should be a list of strings", 'select = ["PF101"]'),
        ("ignore = [1]", "ignore should be a list of strings", ""),
        ("per-file-ignores = ['a']", "per-file-ignores should be a table", ""),
        ("[per-node-ignores]\n'x' = 'PF1'", "per-node-ignores.'x' should be a list", ""),
        ("select = [", "is not valid TOML", ""),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str, hint: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(errors.UsageError) as caught:
        config.load(path)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_a_file_without_the_section_or_without_a_table_is_refused(tmp_path: Path) -> None:
    for text in ("", "[tool]\npadfix = 3\n"):
        with pytest.raises(errors.UsageError):
            config.load(written(tmp_path, text, "pyproject.toml"))
    with pytest.raises(errors.UsageError, match="can't be read"):
        config.load(tmp_path / "missing.toml")


@pytest.mark.parametrize(
    ("source", "one", "ignored"),
    [
        ("old/a.onnx", finding(), True),
        ("old/deep/er/a.onnx", finding(), True),
        ("older/a.onnx", finding(), False),
        ("old/a.onnx", finding("PF202"), False),
        ("new/x.legacy.onnx", finding("PF202"), True),
        ("new/a.onnx", finding(node="stem_1"), True),
        ("new/a.onnx", finding("PF102", node="stem_1"), False),
        ("new/a.onnx", finding(node="stem_1", graph="main/If.then_branch"), False),
    ],
)
def test_ignores_by_file_and_node(tmp_path: Path, source: str, one: Finding, ignored: bool) -> None:
    settings = config.load(written(tmp_path, EXAMPLE))
    assert settings.ignores(tmp_path / source, one) is ignored


def test_exclusion_is_relative_to_the_file_and_not_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config.load(written(tmp_path, EXAMPLE))
    (tmp_path / "scratch").mkdir()
    monkeypatch.chdir(tmp_path / "scratch")
    assert settings.excludes(Path("a.onnx"))
    assert not settings.excludes(Path("..") / "a.onnx")
