"""``python -m tests.rules.renew_fixtures``: writes anew what is expected of each fixture, ``after.onnxtxt``.

Read the difference before you commit it: it is what the change at hand does to models.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import onnx
from onnx import ModelProto, parser, printer

import padfix

FIXTURES = Path(__file__).parents[2] / "fixtures"
CASES = sorted(path.parent for path in FIXTURES.glob("PF*/*/case.toml"))
TOLD = ("target", "pads", "opset")


def load(folder: Path) -> tuple[dict[str, Any], ModelProto]:
    """Return what a fixture says of itself, and its model."""
    case = tomllib.loads((folder / "case.toml").read_text())
    model: ModelProto = parser.parse_model((folder / "before.onnxtxt").read_text())
    return case, model


def text_of(model: ModelProto) -> str:
    """Return a model as text, a line for each node."""
    return f"{printer.to_text(model).rstrip()}\n"


def main() -> int:
    """Write the files that differ, and name them; return 1 when a fixture could not be converted."""
    code = 0
    for folder in CASES:
        case, model = load(folder)
        expected = folder / "after.onnxtxt"
        if "finding" not in case:
            expected.unlink(missing_ok=True)
            continue
        with tempfile.TemporaryDirectory() as name:
            source, result = Path(name, "before.onnx"), Path(name, "after.onnx")
            onnx.save(model, source)
            told = {key: case[key] for key in TOLD if key in case}
            try:
                padfix.convert(source, result, **told, reference="spec")
            except padfix.PadfixError as error:
                print(f"{folder.relative_to(FIXTURES)}: {error}", file=sys.stderr)
                code = 1
                continue
            after = text_of(onnx.load(result))
        if not expected.exists() or expected.read_text(encoding="utf-8") != after:
            expected.write_text(after, encoding="utf-8")
            print(expected.relative_to(FIXTURES))
    return code


if __name__ == "__main__":
    sys.exit(main())
