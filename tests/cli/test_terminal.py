"""What a terminal shows: seen through a real one, in several widths, with and without colours, Unicode and a cursor."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.support.pseudo_terminal import run_on

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "fixtures" / "onnx" / "same_cnn.onnx"
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
PLAIN = {"CI": "", "NO_COLOR": "", "FORCE_COLOR": "", "TERM": "xterm", "LC_ALL": "C.UTF-8"}


def on_terminal(folder: Path, columns: int, *arguments: str, **variables: str) -> tuple[int, str]:
    """Run padfix on a terminal of so many columns; return its exit code and all that it wrote there."""
    ends = pty.openpty()
    fcntl.ioctl(ends[1], termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {key: text for key, text in (os.environ | PLAIN | variables).items() if text and key != "COLUMNS"}
    command = [sys.executable, "-m", "padfix", *arguments]
    code, shown = run_on(command, folder, environment | {"PYTHONPATH": str(ROOT)}, ends=ends)
    return code, shown.decode("utf-8").replace("\r\n", "\n")


def left_over(shown: str) -> str:
    """Return what stays on the screen of what was written: each line behind its last carriage return."""
    return "\n".join(ESCAPES.sub("", line.rpartition("\r")[2]) for line in shown.split("\n"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(MODEL, tmp_path)
    return tmp_path


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_findings_fit_the_terminal(columns: int, folder: Path) -> None:
    code, shown = on_terminal(folder, columns, "check", "same_cnn.onnx")
    assert code == 1
    lines = left_over(shown).splitlines()
    too_long = [line for line in lines if len(line) > columns]
    assert all(line.startswith("  fix: ") for line in too_long), "what is to be pasted is not broken"
    said = " ".join(" ".join(lines).split())
    assert " PF101 implicit-same-padding: 3 warnings main/stem Conv " in said
    assert said.count("leaves the pads to the runtime; here they are [0, 0, 1, 1].") == 2
    assert said.endswith("\u2717 4 findings (4 warnings) in 1 model; padfix convert rewrites 4.")
    assert "\x1b[1;31m\u2717 4 findings" in shown


@pytest.mark.parametrize("columns", [40, 100])
def test_a_conversion_shows_what_is_proven_and_how_much_is_left(columns: int, folder: Path) -> None:
    code, shown = on_terminal(folder, columns, "convert", "same_cnn.onnx", "-o", "out.onnx")
    assert code == 0
    assert all(len(line) <= columns for part in left_over(shown).splitlines() for line in part.split("\r"))
    assert "\u2713 Wrote out.onnx (opset 17)." in left_over(shown)
    assert "Proving" not in left_over(shown), "the live line goes without a trace"
    assert "\x1b[?25l" not in shown, "the cursor is never hidden"


def test_the_live_line_counts() -> None:
    """A step long enough to be drawn: each stage is told how many there are."""
    script = (
        "import sys, time\n"
        "from padfix.cli.terminal import LiveLine\n"
        "with LiveLine(sys.stderr) as line:\n"
        "    line.show('Proving PF101 at a node with a rather long name (3 of 14)')\n"
        "    time.sleep(0.8)\n"
    )
    for columns, expected in ((100, "at a node with a rather long name (3 of 14)"), (40, "... (3 of 14)")):
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        environment.pop("COLUMNS", None)
        done = subprocess.run([sys.executable, "-c", script], env=environment, stderr=follower, check=False, cwd=ROOT)
        os.close(follower)
        shown = os.read(leader, 65536).decode()
        os.close(leader)
        assert done.returncode == 0
        drawn = [ESCAPES.sub("", each) for each in shown.split("\r")]
        assert any(expected in each for each in drawn)
        assert all(len(each) < columns for each in drawn)
        assert shown.endswith("\r\x1b[K")


def test_without_unicode_there_are_no_marks(folder: Path) -> None:
    variables = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code, shown = on_terminal(folder, 80, "convert", "same_cnn.onnx", "-o", "out.onnx", **variables)
    assert code == 0
    assert shown.isascii()
    assert "\\u" not in shown
    assert "\x1b[1;32mWrote out.onnx (opset 17).\x1b[0m" in shown


def test_no_colour_is_no_colour(folder: Path) -> None:
    _, shown = on_terminal(folder, 80, "convert", "same_cnn.onnx", "-o", "out.onnx", NO_COLOR="1")
    assert set(re.findall(r"\x1b\[[0-9;]*([A-Za-z])", shown)) <= {"K"}, "the live line clears itself, and no more"


@pytest.mark.parametrize("variables", [{"TERM": "dumb"}, {"CI": "true", "NO_COLOR": "1"}])
def test_what_has_no_cursor_gets_lines_alone(variables: dict[str, str], folder: Path) -> None:
    code, shown = on_terminal(folder, 80, "convert", "same_cnn.onnx", "-o", "out.onnx", **variables)
    assert code == 0
    assert "\x1b" not in shown
    assert "\r" not in shown
    assert shown.startswith("same_cnn.onnx: ONNX\n")


def test_a_log_has_whole_lines_and_no_marks(folder: Path) -> None:
    environment = {key: text for key, text in os.environ.items() if key not in ("CI", "NO_COLOR", "FORCE_COLOR")}
    done = subprocess.run(
        [sys.executable, "-m", "padfix", "check", "same_cnn.onnx"],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT), "COLUMNS": "40"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.isascii()
    assert "    main/pool  MaxPool  auto_pad=SAME_UPPER leaves the pads to the runtime; here they are" in done.stdout
    assert done.stdout.endswith("\n\n4 findings (4 warnings) in 1 model; padfix convert rewrites 4.\n")


def test_many_models_are_counted(folder: Path) -> None:
    for number in range(240):  # enough that a fast machine needs longer than the line waits before it shows
        shutil.copy(MODEL, folder / f"copy{number}.onnx")
    code, shown = on_terminal(folder, 80, "check", "--quiet", ".")
    assert (code, shown) == (1, "")
    _, shown = on_terminal(folder, 80, "check", ".", "--format", "json", "--output", "found.json")
    assert re.search(r"Checking copy\d+\.onnx \(\d+ of 241\)", shown)
    assert left_over(shown).strip() == ""
