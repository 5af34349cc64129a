"""The page on the operators that padfix converts itself is complete, and part of the package."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "padfix"
FOLDER = PACKAGE / "sources" / "tf_ops"
PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")
FILES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")] for line in PAGE.splitlines() if line.startswith("| `")
]


def operators(file: str) -> set[str]:
    module = importlib.import_module(f"padfix.sources.tf_ops.{file}")
    return {name.removeprefix("Gathered") for name in getattr(module, "OPERATORS", ())}


@pytest.mark.parametrize("file", FILES)
def test_every_file_is_on_the_page(file: str) -> None:
    if not operators(file):
        assert f"`{file}.py`" in PAGE
        return
    rows = [row for row in ROWS if row[0] == f"`{file}.py`"]
    for row in rows:
        assert len(row) == 4, "file, operators, what tf2onnx does, what padfix does and why"
        assert all(len(cell) > 20 for cell in row[2:4])
    named = " ".join(row[1] for row in rows)
    for operator in operators(file):
        said = operator in named or (operator.endswith(("Input", "InputV2")) and "gradients" in named)
        assert said, f"{operator} is missing in the row of {file}.py"


def test_every_row_is_a_file() -> None:
    assert [row[0] for row in ROWS if row[0].strip("`").removesuffix(".py") not in FILES] == []


def test_issue_numbers_agree_with_their_links() -> None:
    target = re.compile(
        r"^\[(?:([\w/-]+))?#(\d+)\]: https://github\.com/([\w/-]+)/(?:issues|pull)/(\d+)$", re.MULTILINE
    )
    defined = target.findall(PAGE)
    assert len(defined) == PAGE.count("]: https://") > 10
    for repository, number, linked_repository, linked_number in defined:
        assert (repository or "onnx/tensorflow-onnx", number) == (linked_repository, linked_number)
    used = set(re.findall(r"\[([\w/-]*#\d+)\](?!:)", PAGE))
    assert used == {f"{repository}#{number}" for repository, number, *_ in defined}


def test_the_page_ships_with_the_package() -> None:
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["padfix"]
    assert any(FOLDER / "README.md" in PACKAGE.glob(pattern) for pattern in patterns)
