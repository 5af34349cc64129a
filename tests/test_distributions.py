"""What is shipped: a source distribution that can test itself, a wheel with all its data, images, a small install."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOT_SHIPPED = {".gitattributes", ".gitignore"}
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


def tracked() -> set[str]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this is no checkout")
    return {name for name in done.stdout.split("\0") if name}


def build(kind: str, source: Path, place: Path) -> Path:
    place.mkdir()
    command = [sys.executable, "-c", BUILD, f"build_{kind}", str(place)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    if done.returncode and re.search(r"setuptools|license", done.stderr):
        pytest.skip("this setuptools is too old to build it")
    assert done.returncode == 0, done.stderr
    return place / done.stdout.splitlines()[-1]


def test_both_distributions_are_complete(tmp_path: Path) -> None:
    """The sdist holds everything that is tracked, so that its tests run; the wheel made of it holds the package."""
    copy = tmp_path / "copy"
    for name in tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    archive = build("sdist", copy, tmp_path / "sdist")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    shipped = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert tracked() - shipped == NOT_SHIPPED
    assert not [name for name in shipped if "__pycache__" in name]
    wheel = build("wheel", unpacked, tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as opened_wheel:
        names = set(opened_wheel.namelist())
        (metadata,) = [name for name in names if name.endswith("METADATA")]
        said = email.message_from_bytes(opened_wheel.read(metadata))
    assert {name for name in tracked() if name.startswith("padfix/")} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert (said["License-Expression"], said["Author"]) == ("Apache-2.0", "The padfix developers")


def test_the_license_is_the_one_that_is_named() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert PROJECT["license"] == "Apache-2.0"
    assert re.match(r"\s*Apache License\s+Version 2\.0, January 2004", text)
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_images_install_what_the_project_names() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert set(re.findall(r"^FROM base AS (\w+)$", text, re.MULTILINE)) == {"check", "onnx", "tensorflow"}
    for extras in re.findall(r"\[([\w,]+)\]\"", text):
        assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    small = re.findall(r'"((?:click|numpy|onnx)>=[^"]+)"', text)
    assert len(small) == 3
    guide = (ROOT / "padfix" / "docs" / "builds.md").read_text(encoding="utf-8")
    for requirement in small:
        assert requirement in PROJECT["dependencies"]
        assert f'"{requirement}"' in guide
    copied = {name for line in re.findall(r"^COPY (.*)$", text, re.MULTILINE) for name in line.split()[:-1]}
    assert all((ROOT / name).exists() for name in copied)


def test_the_images_pass_a_linter() -> None:
    linter = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if linter is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([linter, "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


WITHOUT = """
import sys
for name in ("onnxruntime", "onnx_graphsurgeon", "cryptography", "PIL", "tensorflow"):
    sys.modules[name] = None
sys.argv[0] = "padfix"
from padfix.cli import main
main()
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check", "same_cnn.onnx", "--format", "html"], 1),
        (["check", "explicit_cnn.onnx"], 0),
        (["inspect", "same_cnn.onnx"], 0),
        (["explain", "PF101"], 0),
    ],
)
def test_a_small_installation_checks(arguments: list[str], code: int) -> None:
    assert without(arguments).returncode == code


def test_a_small_installation_says_what_is_missing(tmp_path: Path) -> None:
    done = without(["convert", "same_cnn.onnx", "-o", str(tmp_path / "out.onnx")])
    assert done.returncode == 2
    assert "needs the package onnx" in done.stderr
    assert "internal error" not in done.stderr


def without(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments],
        cwd=ROOT / "fixtures" / "onnx",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
