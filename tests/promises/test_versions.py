"""The lowest versions that the README states are those that the package declares, and what is installed is in range."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STATED = ("onnx", "onnxruntime", "tensorflow", "tf-keras", "tf2onnx")


def declared() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = dict(
        re.fullmatch(r"([\w-]+)>=([\d.]+)", entry).groups()  # type: ignore[union-attr]
        for entry in [*project["dependencies"], *project["optional-dependencies"]["tf"]]
    )
    return {**bounds, "Python": project["requires-python"].removeprefix(">=")}


@pytest.mark.parametrize("package", ["Python", *STATED])
def test_the_readme_states_the_declared_bounds(package: str) -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert re.search(rf"\b{package} from {re.escape(declared()[package])}(?![.\d]*\d)", text)


@pytest.mark.parametrize("package", STATED)
def test_what_is_installed_is_in_range(package: str) -> None:
    try:
        installed = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")

    def numbers(version: str) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", version)[:2]]

    assert numbers(installed) >= numbers(declared()[package])
