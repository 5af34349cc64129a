"""``check --changed-since`` and ``--exclude``: only the models that a branch changed, without those of others."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from padfix.cli.group import cli, run

FIXTURE = Path(__file__).parents[2] / "fixtures" / "onnx" / "same_cnn.onnx"


def invoke(*arguments: object) -> int:
    return run(cli, [str(argument) for argument in arguments])


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two models on its first branch, a third on another one, and what was done since."""
    models = tmp_path / "models and more"
    models.mkdir()
    for name in ("old.onnx", "edited.onnx", "gone.onnx"):
        shutil.copy(FIXTURE, models / name)
    git(tmp_path, "init", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    git(tmp_path, "checkout", "-b", "work")
    shutil.copy(FIXTURE, models / "committed é.onnx")
    (models / "gone.onnx").unlink()
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "second")
    git(tmp_path, "checkout", "main")
    (tmp_path / "elsewhere").write_text("main went on")
    shutil.copy(FIXTURE, models / "theirs.onnx")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "third")
    git(tmp_path, "checkout", "work")
    shutil.copy(FIXTURE, models / "new.onnx")
    (models / "edited.onnx").write_bytes(FIXTURE.with_name("legacy_upsample.onnx").read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(capsys: pytest.CaptureFixture[str], *options: object) -> list[str]:
    capsys.readouterr()
    assert invoke("check", *options, "--format", "json", "--exit-zero") == 0
    return [Path(each).name for each in json.loads(capsys.readouterr().out)["sources"]]


def test_what_differs_from_where_the_branch_parted(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(capsys, ".", "--changed-since", "main") == ["committed é.onnx", "edited.onnx", "new.onnx"]
    assert checked(capsys, ".", "--changed-since", "HEAD") == ["edited.onnx", "new.onnx"]
    assert checked(capsys, ".") == ["committed é.onnx", "edited.onnx", "new.onnx", "old.onnx"]


def test_nothing_changed(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("check", "models and more/old.onnx", "--changed-since", "main") == 0
    assert "no model differs from main" in capsys.readouterr().err
    for name in ("json", "sarif", "junit", "github", "gitlab", "markdown", "html"):
        assert invoke("check", "models and more/old.onnx", "--changed-since", "main", "--format", name) == 0


def test_a_file_outside_the_repository_is_checked(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "model.onnx"
    shutil.copy(FIXTURE, outside)
    assert checked(capsys, outside, "--changed-since", "main") == ["model.onnx"]


@pytest.mark.parametrize("reference", ["nowhere", "--output=stolen", "", "HEAD; touch stolen"])
def test_what_is_no_commit_is_refused(reference: str, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("check", ".", f"--changed-since={reference}") == 2
    assert "git can't say what changed" in capsys.readouterr().err
    assert not (repository / "stolen").exists()


def test_without_a_repository_or_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert invoke("check", FIXTURE, "--changed-since", "main") == 2
    monkeypatch.setenv("PATH", str(tmp_path))
    assert invoke("check", FIXTURE, "--changed-since", "main") == 2


def test_a_folder_or_a_pattern_is_left_out(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(repository / "models and more", repository / "a [copy]" / "deep")
    own = ["committed é.onnx", "edited.onnx", "new.onnx", "old.onnx"]
    assert len(checked(capsys, ".")) == 8
    assert checked(capsys, ".", "--exclude", "a [copy]") == own
    assert checked(capsys, ".", "--exclude", repository / "a [copy]" / "deep" / "..") == own
    assert checked(capsys, ".", "--exclude", "*/deep/*", "--exclude", "new.onnx") == [own[0], own[1], own[3]]


def test_exit_zero_is_about_findings_alone(tmp_path: Path) -> None:
    assert invoke("check", FIXTURE) == 1
    assert invoke("check", FIXTURE, "--exit-zero") == 0
    (tmp_path / "broken.onnx").write_bytes(b"\x00")
    assert invoke("check", tmp_path / "broken.onnx", "--exit-zero") == 2
