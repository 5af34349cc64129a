"""The walls between the rooms, held by reading the imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "padfix"
TENSORFLOW = ("tensorflow", "tf2onnx", "keras", "tf_keras")
HEAVY = ("onnxruntime", "onnx.reference", "onnx_graphsurgeon", "tensorflow", "jinja2")

FLOORS = (
    ("errors", "geometry"),
    ("results", "kernels", "process", "targets"),
    ("config", "files"),
    ("graph",),
    ("operators",),
    ("rules",),
    ("reports",),
    ("checking",),
    ("proof",),
    ("diagnose",),
    ("sources",),
    ("rewrite", "runtimes"),
    ("api",),
    ("cli",),
    ("__main__",),
)
"""The rooms from the ground up. A module imports from its own room and from the floors below, never beside or above."""

ROOT_FILES = {"__init__.py", "__main__.py", "api.py", "errors.py"}

LONGEST_FILE = 450
LONGEST_FUNCTION = 60

NOT_YET: dict[str, frozenset[str]] = {
    "walls": frozenset({}),
    "circles": frozenset(),
    "files": frozenset(),
    "functions": frozenset(),
}
"""What still breaks a limit. Nothing may be added."""


def name_of(module: Path) -> str:
    parts = module.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


class Read(NamedTuple):
    """What the limits ask of a module; its tree is not kept, which all trees together would make too dear to collect.

    Attributes:
        imports: The full name of everything that it imports, wherever in the file; types alone excepted.
        long: The functions that are too long.
    """

    imports: tuple[str, ...]
    long: tuple[str, ...]


@cache
def read() -> dict[str, Read]:
    """Return what all modules are like."""
    trees = ((module, ast.parse(path.read_text(encoding="utf-8"))) for module, path in MODULES.items())
    return {module: Read(tuple(_imported(module, tree)), tuple(_long(tree))) for module, tree in trees}


def imports(module: str) -> tuple[str, ...]:
    return read()[module].imports


def _imported(module: str, tree: ast.Module) -> Iterator[str]:
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


def _long(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            documented = ast.get_docstring(node) is not None
            first = node.body[0]
            described = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
            if node.end_lineno - node.lineno + 1 - described > LONGEST_FUNCTION:
                yield node.name


@cache
def edges() -> dict[str, set[str]]:
    """Return which modules of the package each of them imports."""
    found: dict[str, set[str]] = {}
    for module in MODULES:
        named = {name if name in MODULES else name.rpartition(".")[0] for name in imports(module)}
        found[module] = {name for name in named if name in MODULES and name != module}
    return found


def room_of(module: str) -> str:
    """Return the room of a module; the package itself, which imports nothing until it is asked, has none."""
    return [*module.split("."), ""][1]


def within(name: str, *rooms: str) -> bool:
    return any(name == room or name.startswith(room + ".") for room in rooms)


def holds(limit: str, offenders: Iterable[str]) -> None:
    """Make sure that nothing breaks a limit but what is known to."""
    assert set(offenders) - NOT_YET[limit] == set(), limit


def test_each_room_has_a_floor() -> None:
    rooms = {room_of(module) for module in MODULES} - {""}
    placed = [room for floor in FLOORS for room in floor]
    assert rooms <= set(placed)
    assert len(placed) == len(set(placed))


def test_no_room_imports_from_beside_or_above() -> None:
    floor_of = {room: number for number, floor in enumerate(FLOORS) for room in floor}
    holds(
        "walls",
        (
            f"{module} -> {name}"
            for module, names in edges().items()
            for name in names
            if (here := room_of(module)) and (there := room_of(name)) and here != there
            if floor_of[there] >= floor_of[here]
        ),
    )


def test_no_room_below_the_command_line_imports_the_package_itself() -> None:
    """It stands on the API, and so on everything."""
    holds("walls", (module for module, names in edges().items() if "padfix" in names and room_of(module) != "cli"))


def test_no_imports_run_in_a_circle() -> None:
    """Tarjan's strongly connected components, of imports at the top of a module and inside functions alike."""
    graph = edges()
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []
    circles: list[str] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        open_.append(module)
        for name in graph[module]:
            if name not in order:
                visit(name)
                lowest[module] = min(lowest[module], lowest[name])
            elif name in open_:
                lowest[module] = min(lowest[module], order[name])
        if lowest[module] == order[module]:
            component = open_[open_.index(module) :]
            del open_[open_.index(module) :]
            if len(component) > 1:
                circles.append(" ".join(sorted(component)))

    for module in graph:
        if module not in order:
            visit(module)
    holds("circles", circles)


def test_walls_to_other_packages() -> None:
    for module in MODULES:
        room = room_of(module)
        for name in imports(module):
            where = f"{module} imports {name}"
            if room not in ("cli", "__main__"):
                assert not within(name, "click"), where
            if room != "sources":
                assert not within(name, *TENSORFLOW), where
            if module != "padfix.graph.fragment_builder":
                assert not within(name, "onnx_graphsurgeon"), where
            if room in ("files", "process", "geometry", "errors", "config", "results", "reports"):
                assert not within(name, "onnxruntime", "onnx.reference"), where


@pytest.mark.parametrize(
    ("room", "never"),
    [
        ("kernels", ("operators", "rules", "graph", "proof")),  # the independent witness reads for itself
        ("reports", ("cli", "proof", "sources", "rewrite")),
        ("rules", ("proof", "kernels", "sources")),
        ("process", ("cli", "reports", "files")),
    ],
)
def test_walls_that_stand_whatever_the_floors(room: str, never: tuple[str, ...]) -> None:
    for module, names in edges().items():
        if room_of(module) == room:
            assert not {name for name in names if room_of(name) in never}, module


def test_nothing_else_lies_at_the_root() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == ROOT_FILES
    folders = {path.parent for path in MODULES.values()}
    assert all((folder / "__init__.py").exists() for folder in folders)


def test_files_are_short() -> None:
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in MODULES.items()}
    holds("files", (module for module, length in lengths.items() if length > LONGEST_FILE))


def test_functions_are_short() -> None:
    holds("functions", (f"{module}.{name}" for module, found in read().items() for name in found.long))


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
