"""What a model is, nobody learns but the user."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FIXTURE = Path(__file__).parents[2] / "fixtures" / "onnx" / "same_cnn.onnx"


def test_a_conversion_leaves_nothing_in_the_home_and_says_nothing_of_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name not in ("ORT_DISABLE_TELEMETRY", "CI")}
    done = subprocess.run(
        [sys.executable, "-m", "padfix", "convert", str(FIXTURE), "-o", str(tmp_path / "out.onnx"), "-q"],
        env={**kept, "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stdout + done.stderr
    assert not [path for path in home.rglob("*") if path.is_file()]
