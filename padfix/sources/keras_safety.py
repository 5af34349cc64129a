"""What a Keras file may hold besides layers and weights: code, modules to import, files to read, and archives that lie.

Nothing here imports Keras. What is refused runs with ``--trust`` only.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import stat
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from padfix.errors import SourceError, UnsupportedError
from padfix.files.containment import is_inner

HINT = (
    "Where the model's code is, export it with model.export(folder) and give padfix that folder; or, if you would run "
    "a program of its author, allow it with --trust."
)

MOST_UNPACKED = 64 << 20
"""Bytes that an archive may always unpack to; beyond, only :data:`MOST_GROWTH` times its own size."""

MOST_GROWTH = 30

_PICKLES = (".pkl", ".pickle", ".npz", ".npy", ".pt", ".pth", ".joblib", ".dill")
_RUNS_CODE = frozenset({"Lambda", "__lambda__", "TFSMLayer", "TorchModuleWrapper", "JaxLayer", "FlaxLayer"})
_CALLED = {
    **dict.fromkeys(("Lambda", "__lambda__", None), "a Lambda layer with stored Python code"),
    "TFSMLayer": "a layer of another file",
}
_FILE_ARGUMENTS = ("vocabulary", "idf_weights", "filepath", "file_path")
_PACKAGES = ("keras", "tf_keras")
_HARMLESS_BUILTINS = frozenset({"slice", "int", "float", "bool", "str", "tuple", "list", "dict", "__tuple__"})
_OWN_MODULES = frozenset(
    {
        "activations", "applications", "constraints", "dtype_policies", "engine", "initializers", "layers", "losses",
        "metrics", "mixed_precision", "models", "ops", "optimizers", "quantizers", "random", "regularizers", "src",
        "backend", "legacy", "api", "_tf_keras", "dtensor",
    }
)  # fmt: skip
_OWN_TOP_CLASSES = frozenset(
    {"DTypePolicy", "FloatDTypePolicy", "Functional", "KerasTensor", "Model", "Sequential", "Variable", "Layer"}
)


def require_sound_archive(path: Path) -> None:
    """Make sure that the zip unpacks to what it is and nowhere else.

    Raises:
        SourceError: It is damaged, climbs out of its folder, or unpacks to absurdly much.
    """
    damaged = "Fetch or save it again."
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise SourceError(f"{path} is a truncated or damaged zip archive.", damaged) from error
    size = path.stat().st_size
    unpacked = sum(member.file_size for member in members)
    if unpacked > max(MOST_UNPACKED, MOST_GROWTH * size) or len(members) > 10_000:
        raise SourceError(
            f"{path} has {size} bytes and would unpack to {unpacked}: an archive made to fill a disk.",
            "Do not trust this file.",
        )
    names: set[str] = set()
    for member in members:
        if not is_inner(member.filename) or stat.S_ISLNK(member.external_attr >> 16):
            raise SourceError(
                f"{path} holds {member.filename!r}, which would be unpacked outside its folder.",
                "Do not trust this file.",
            )
        if member.filename in names:
            raise SourceError(f"{path} holds {member.filename!r} twice.", damaged)
        names.add(member.filename)
        if member.flag_bits & 1:
            raise SourceError(f"{path} is encrypted.", "Give padfix the file without a password.")


def refuse_pickles(path: Path) -> None:
    """Refuse an archive with members that may hold pickled Python.

    Raises:
        UnsupportedError: Naming the member.
    """
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.lower().endswith(_PICKLES):
                raise UnsupportedError(f"{path} holds {name!r}, which may hold pickled Python.", HINT)


def lambda_layers(configuration: str) -> list[str]:
    """Return the names of the Lambda layers in a configuration."""
    with contextlib.suppress(ValueError, RecursionError):
        return [_layer(item) for item in _dictionaries(json.loads(configuration)) if item.get("class_name") == "Lambda"]
    return []


def _dictionaries(document: Any) -> Iterator[dict[str, Any]]:
    pending = [document]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending.extend(item)
        elif isinstance(item, dict):
            yield item
            pending.extend(item.values())


def _layer(item: dict[str, Any]) -> str:
    """Return the name that a configuration gives a layer, or nothing."""
    inner = item.get("config")
    named = inner.get("name") if isinstance(inner, dict) else None
    return named if isinstance(named, str) else ""


def refuse_code(path: Path, configuration: str, known: Collection[str] = ()) -> None:
    """Refuse a configuration that carries code, or names code of anyone but Keras, or a file to read.

    ``known`` are names of classes and functions that the user gave.

    Raises:
        SourceError: It is not JSON.
        UnsupportedError: Naming what it carries.
    """
    try:
        document = json.loads(configuration)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path} is damaged: its configuration is not JSON.", "Fetch or save it again.") from error
    for item in _dictionaries(document):
        name, module = item.get("class_name"), item.get("module")
        if name in _RUNS_CODE or item.get("function_type") == "lambda":
            what = _CALLED.get(name, f"a {name}, which holds foreign code")
            if _layer(item):
                what = f"{what} ({_layer(item)!r})"
            raise UnsupportedError(f"{path} holds {what}, which padfix does not run.", HINT)
        is_known = not {_called(item), item.get("registered_name")}.isdisjoint(known)
        if isinstance(module, str) and not is_known and not _is_keras(module, str(name), item.get("config")):
            raise UnsupportedError(
                f"{path} names {_called(item)!r} of the module {module!r}: custom code, which padfix does not import.",
                f"{HINT} From Python, give it as custom_objects={{{_called(item)!r}: ...}}; on the command line, with "
                f"--custom {module}:{_called(item)} --trust.",
            )
        if _is_code(item.get("value")):
            raise UnsupportedError(
                f"{path} holds a function (of an activation, say) as stored Python code, which Keras can't read again.",
                "Where the model's code is, export it with model.export(folder) and give padfix that folder.",
            )
        for key in _FILE_ARGUMENTS:
            if isinstance(item.get(key), str):
                raise UnsupportedError(f"{path} names a file to read, {key} {item[key]!r}.", HINT)


def _is_code(value: Any) -> bool:
    """Whether a value is code, defaults and closure of a lambda, as Keras writes one outside a Lambda layer."""
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str) and value[0].endswith("\n")


def _called(item: dict[str, Any]) -> str:
    inner = item.get("config")
    return inner if item.get("class_name") == "function" and isinstance(inner, str) else str(item.get("class_name"))


def _is_keras(module: str, name: str, inner: Any) -> bool:
    """Whether what a configuration asks for is one of Keras's own parts that a model is made of."""
    package, _, rest = module.partition(".")
    if module == "builtins":
        # A custom function is written so, too; Keras then looks it up among what the user registered.
        return name in _HARMLESS_BUILTINS or (name == "function" and isinstance(inner, str) and _is_no_builtin(inner))
    if package not in _PACKAGES:
        return False
    if not rest:
        return name in _OWN_TOP_CLASSES
    parts = rest.split(".")
    if not set(parts[:1]) <= _OWN_MODULES:
        return False
    return not {"saving", "utils", "config", "export", "trainers", "callbacks"} & set(parts)


def _is_no_builtin(name: str) -> bool:
    return not hasattr(importlib.import_module("builtins"), name)


def refuse_links(path: Path, opened: Any) -> None:
    """Refuse an HDF5 file (an open ``h5py.File``) whose data lies in other files.

    Raises:
        SourceError: Naming the dataset or link.
    """
    h5py = importlib.import_module("h5py")
    links: list[tuple[str, Any]] = []
    opened.visititems_links(lambda name, link: links.append((name, link)))
    for name, link in links:
        if isinstance(link, h5py.ExternalLink):
            raise SourceError(f"{path} holds {name!r}, a link into another file.", "Do not trust this file.")
        # A soft link leads to a place of the same file, which is visited by its own name.
        member = None if isinstance(link, h5py.SoftLink) else opened[name]
        if isinstance(member, h5py.Dataset):
            sources = member.virtual_sources() if member.is_virtual else ()
            if member.external or any(source.file_name != "." for source in sources):
                raise SourceError(f"{path} keeps {name!r} in another file.", "Do not trust this file.")
