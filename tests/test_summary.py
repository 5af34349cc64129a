"""What a run of the suite says at its end of the tests that it left out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

TESTS = """
import pytest

@pytest.mark.slow
def test_slow():
    pass

@pytest.mark.sweep(3)
@pytest.mark.parametrize("number", range(7))
def test_sweep(number):
    pass

def test_package():
    pytest.importorskip("a_package_that_is_not_there")
"""


def test_what_is_left_out_is_listed_by_reason(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_few.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    sweep\n    tensorflow\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    run = partial(subprocess.run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    done = run(command)
    assert done.returncode == 0, done.stdout
    listed = done.stdout.partition("6 left out, by reason")[2].splitlines()[1:3]
    assert listed[0] == "     5  a full sweep; run it with --slow"
    assert listed[1].startswith("     1  could not import 'a_package_that_is_not_there'")
    done = run([*command, "--slow"])
    assert "1 left out, by reason" in done.stdout
