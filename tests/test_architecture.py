"""The walls between the rooms, held by reading the imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "padfix"
MODULES = sorted(PACKAGE.rglob("*.py"))
TENSORFLOW = ("tensorflow", "tf2onnx", "keras", "tf_keras")
HEAVY = ("onnxruntime", "onnx.reference", "onnx_graphsurgeon", "tensorflow", "rich", "jinja2")


def imports(module: Path) -> Iterator[str]:
    """Yield the full name of everything that a module imports, wherever in the file; types alone excepted."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    types_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in types_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(name: str, *rooms: str) -> bool:
    return any(name == room or name.startswith(room + ".") for room in rooms)


def room_of(module: Path) -> str:
    return module.relative_to(PACKAGE).parts[0]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(ROOT)))
def test_walls(module: Path) -> None:
    room = room_of(module)
    relative = module.relative_to(PACKAGE).as_posix()
    for name in imports(module):
        where = f"{relative} imports {name}"
        if room == "geometry":
            assert not within(name, "padfix") or within(name, "padfix.geometry"), where
        if room == "kernels":
            assert not within(name, "padfix.rules", "padfix.proof", "padfix.cli"), where
        if room == "rules":
            assert not within(name, "padfix.proof", "padfix.kernels", "padfix.cli", "padfix.sources"), where
        if room == "reports":
            assert not within(name, "padfix.cli", "padfix.proof", "padfix.sources", "padfix.rewrite.engine"), where
        if room != "cli":
            assert not within(name, "click", "rich"), where
            if relative != "__main__.py":
                assert not within(name, "padfix.cli"), where
        if room != "sources":
            assert not within(name, *TENSORFLOW), where
        if relative != "graph/fragment.py":
            assert not within(name, "onnx_graphsurgeon"), where


def loaded_by(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after ``code``."""
    script = f"{code}\nimport sys\nprint('\\n'.join(['MODULES', *sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.rpartition("MODULES\n")[2].splitlines())


@pytest.mark.parametrize("model", ["same_cnn", "dynamic_same", "transposed_same", "legacy_upsample", "explicit_cnn"])
def test_check_loads_nothing_heavy(model: str) -> None:
    path = ROOT / "fixtures" / "onnx" / f"{model}.onnx"
    modules = loaded_by(f"from padfix.cli.group import cli, run\nassert run(cli, ['check', {str(path)!r}]) in (0, 1)")
    assert "padfix.rules.registry" in modules
    assert not {name for name in modules if within(name, *HEAVY)}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_loads_not_even_onnx(arguments: list[str]) -> None:
    modules = loaded_by(f"from padfix.cli.group import cli, run\nassert run(cli, {arguments!r}) == 0")
    assert not {name for name in modules if within(name, "onnx", "numpy", *HEAVY)}


def test_import_padfix_costs_nothing() -> None:
    modules = loaded_by("import padfix")
    assert not {name for name in modules if within(name, "onnx", "numpy", "click", *HEAVY)}
