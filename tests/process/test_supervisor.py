"""The process that does the work may crash, hang, or be stopped at any moment; the one above it always answers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.pseudo_terminal import run_on

ROOT = Path(__file__).parents[2]
LIMITED = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is Linux's")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the work is done in a fork")

PREAMBLE = """
import os, pathlib, re, signal, sys, time
from padfix.process import watch
from padfix.process import oversight, supervisor
from padfix.cli.exits import print_error, run
import click
OPEN = []
DEAF = ("(a+)+b", "a" * 60)  # a match that takes years, inside code that hears no signal

def scratch():
    folder = pathlib.Path(f".out.onnx.padfix-{os.getpid()}-0")
    OPEN.append(watch.scratch(folder.absolute()))
    OPEN[-1].__enter__()
    folder.mkdir()
    (folder / "out.onnx").write_bytes(b"half")
    return folder

def command(function):
    return lambda: run(click.Command("padfix", callback=function), [])
"""


def script(folder: Path, body: str) -> list[str]:
    path = folder / "script.py"
    path.write_text(f"{PREAMBLE}\n{body}\nsys.exit(supervisor.supervised(command(work), print_error))\n")
    return [sys.executable, str(path)]


def ask(folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        script(folder, body), cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "script.py")


def test_the_exit_code_and_what_is_printed_come_through(tmp_path: Path) -> None:
    done = ask(tmp_path, "def work():\n    print('out')\n    print('err', file=sys.stderr)\n    return 1")
    assert (done.returncode, done.stdout, done.stderr) == (1, "out\n", "err\n")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("SIGSEGV", "crashed: a segmentation fault"),
        ("SIGABRT", "crashed: an abort"),
        ("SIGKILL", "was killed, most likely by the system for want of memory"),
        ("SIGBUS", "crashed: a bus error"),
    ],
)
def test_a_crash_says_what_was_being_done(name: str, says: str, tmp_path: Path) -> None:
    body = f"""
def work():
    scratch()
    with watch.doing("ONNX Runtime, running a model,"):
        os.kill(os.getpid(), signal.{name})
"""
    done = ask(tmp_path, body)
    assert done.returncode == 2
    assert done.stderr.startswith(f"padfix: error: ONNX Runtime, running a model, {says}")
    assert "Nothing was written." in done.stderr
    assert left(tmp_path) == []


def test_a_folder_that_could_not_be_removed_goes_when_the_work_is_done(tmp_path: Path) -> None:
    """As where memory is so short that the system refuses what removing takes."""
    body = """
def work():
    folder = pathlib.Path(f".out.onnx.padfix-{os.getpid()}-0")
    with watch.scratch(folder.absolute()):
        folder.mkdir()
    return 2
"""
    done = ask(tmp_path, body)
    assert (done.returncode, done.stderr) == (2, "")
    assert left(tmp_path) == []


@pytest.mark.parametrize("how", ["while True: pass", "re.match(*DEAF)"])
def test_work_that_takes_too_long_is_ended(how: str, tmp_path: Path) -> None:
    body = f"""
def work():
    scratch()
    watch.restrict([], seconds=0.5)
    watch.tell("TensorFlow")
    {how}
"""
    done = ask(tmp_path, body)
    assert done.returncode == 2
    assert done.stderr.startswith("padfix: error: TensorFlow took longer than 0 s, and was stopped.")
    assert "--timeout" in done.stderr
    assert left(tmp_path) == []


def test_work_that_waits_for_ever_is_ended(tmp_path: Path) -> None:
    body = """
oversight.IDLE = 0.5
def work():
    watch.restrict([], seconds=1000)
    time.sleep(600)
"""
    done = ask(tmp_path, body)
    assert done.returncode == 2
    assert "padfix did nothing for" in done.stderr


@LIMITED
def test_work_that_finds_no_memory_for_ever_is_ended(tmp_path: Path) -> None:
    body = """
oversight.IDLE = 0.5
def work():
    watch.restrict([], gibibytes=0.25)
    held = []
    while True:
        try:
            held.append(bytearray(2**16))
        except MemoryError:
            pass
"""
    done = ask(tmp_path, body)
    assert done.returncode == 2
    assert "padfix found no memory for 0 s beside the limit of 0.2 GiB of memory, and was stopped." in done.stderr
    assert "--memory" in done.stderr


@LIMITED
def test_work_that_waits_for_ever_beside_its_limit_of_memory_is_ended(tmp_path: Path) -> None:
    body = """
oversight.IDLE = 0.5
def work():
    watch.restrict([], gibibytes=0.25)
    held = bytearray(200 * 2**20)
    time.sleep(600)
"""
    done = ask(tmp_path, body)
    assert done.returncode == 2
    assert "padfix did nothing for 0 s beside the limit of 0.2 GiB of memory, and was stopped." in done.stderr
    assert "--memory" in done.stderr


@LIMITED
def test_work_that_takes_too_much_memory_is_told_so(tmp_path: Path) -> None:
    done = ask(tmp_path, "def work():\n    watch.restrict([], gibibytes=0.25)\n    bytearray(2**30)")
    assert done.returncode == 2
    assert done.stderr.startswith("padfix: error: The work needs more memory than the 0.2 GiB that it may use.")
    assert "--memory" in done.stderr


@LIMITED
def test_an_error_can_be_told_where_all_memory_is_taken(tmp_path: Path) -> None:
    body = """
def work():
    watch.restrict([], gibibytes=0.2)
    taken = []
    size = 1 << 24
    while size > 16:
        try:
            taken.append(bytearray(size))
        except MemoryError:
            size //= 2
    def explain(): raise ValueError("it is all gone" + str(len(taken)) * (1 << 20))
    try:
        explain()
    finally:
        OPEN.append(taken)
"""
    done = ask(tmp_path, body)
    assert done.returncode == 2
    assert done.stderr.startswith("padfix: error: The work needs more memory than the 0.2 GiB that it may use")


@LIMITED
def test_a_crash_beside_the_limit_is_a_want_of_memory(tmp_path: Path) -> None:
    body = """
def work():
    watch.restrict([], gibibytes=0.25)
    watch.tell("TensorFlow")
    held = bytearray(200 * 2**20)
    os.kill(os.getpid(), signal.SIGSEGV)
"""
    done = ask(tmp_path, body)
    assert done.returncode == 2
    beginning = "padfix: error: TensorFlow crashed (a segmentation fault) beside the limit of 0.2 GiB of memory."
    assert done.stderr.startswith(beginning)
    assert "--memory" in done.stderr


@LIMITED
@pytest.mark.parametrize("code", [0, 1, 127])
def test_a_library_that_ends_the_process_is_no_answer(code: int, tmp_path: Path) -> None:
    body = f"""
def work():
    watch.restrict([], gibibytes=0.25)
    watch.tell("OpenBLAS")
    held = bytearray(200 * 2**20)
    os._exit({code})
"""
    done = ask(tmp_path, body)
    assert done.returncode == 2
    said = f"OpenBLAS crashed (a library ended the process, exit code {code}) beside the limit of 0.2 GiB of memory."
    assert done.stderr.startswith(f"padfix: error: {said}")


@pytest.mark.sweep(2)
@LIMITED
@pytest.mark.parametrize("gibibytes", ["0.01", "0.05", "0.08", "0.1", "0.12"])
def test_whatever_memory_is_left_there_is_an_answer(gibibytes: str, tmp_path: Path) -> None:
    """Beside ever smaller limits other libraries fail first, each in its own way."""
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], auto_pad="SAME_UPPER", strides=[2, 2])],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 9, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor("w", TensorProto.FLOAT, [1, 1, 3, 3], [0.5] * 9)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), tmp_path / "a.onnx")
    command = [sys.executable, "-m", "padfix", "convert", "a.onnx", "-o", "b.onnx", "--memory", gibibytes]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        assert (tmp_path / "b.onnx").exists()
    else:
        assert done.returncode == 2
        assert "of memory" in done.stderr or "memory than" in done.stderr
        assert "internal error" not in done.stderr and "--memory" in done.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.onnx"]


SAID = [
    "MemoryError()",
    "RuntimeError('std::bad_alloc')",
    "RuntimeError('Failed to allocate memory for requested buffer of size 4294967296')",
    'RuntimeError("can\'t start new thread")',
    "OSError(12, 'Cannot allocate memory')",
]
SAID_UNDER_A_LIMIT = [
    "EncodeError('Failed to serialize proto')",
    "DecodeError('Error parsing message')",
    "SystemError('error return without exception set')",
]


@pytest.mark.sweep(5)
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("said", [*SAID, *SAID_UNDER_A_LIMIT])
def test_a_want_of_memory_is_named_whoever_noticed_it(said: str, limited: bool, tmp_path: Path) -> None:
    """Behind an error that blames the model, too; where memory is not limited, protobuf may mean something else."""
    body = f"""
from google.protobuf.message import DecodeError, EncodeError
from padfix.errors import RefusedError
def work():
    {"watch.restrict([], gibibytes=4)" if limited else "pass"}
    try:
        raise {said}
    except Exception as error:
        raise RefusedError("model.pb can't be converted.", "Fetch or export it again.") from error
"""
    done = ask(tmp_path, body)
    assert done.returncode == (2 if limited or said in SAID else 1)
    assert done.stderr.count("error: ") == 1
    if limited:
        assert done.stderr.startswith("padfix: error: The work needs more memory than the 4.0 GiB that it may use")
        assert done.stderr.endswith("hint: Nothing was written. Allow more with --memory GIB.\n")
    elif said in SAID:
        assert done.stderr.startswith("padfix: error: There is not enough memory for this work")
    assert ("export it again" in done.stderr) == (not limited and said in SAID_UNDER_A_LIMIT)


@LIMITED
def test_work_that_takes_the_last_memory_is_ended(tmp_path: Path) -> None:
    body = """
from padfix.process import memory
oversight.memory.available = lambda: memory.Memory(1000.0, 20.0)
def work():
    scratch()
    watch.tell("ONNX Runtime, running a model,")
    held = bytes(range(256)) * (2**20)
    time.sleep(600)
"""
    done = ask(tmp_path, body)
    assert done.returncode == 2
    beginning = "padfix: error: ONNX Runtime, running a model, was stopped: it uses 0."
    assert done.stderr.startswith(beginning), done.stderr
    assert "of 1.0 GiB that there are 0.0 GiB are left.\nhint: Nothing was written. Close other" in done.stderr
    assert left(tmp_path) == []


def test_without_a_limit_work_may_wait(tmp_path: Path) -> None:
    done = ask(tmp_path, "oversight.IDLE = 0.2\ndef work():\n    watch.restrict([])\n    time.sleep(1)\n    return 1")
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("way", ["time.sleep(600)", "re.match(*DEAF)"])
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_ends_the_work_and_tidies_up(name: str, code: int, way: str, tmp_path: Path) -> None:
    body = f"def work():\n    scratch()\n    print('ready', flush=True)\n    {way}"
    process = start(tmp_path, body)
    process.send_signal(getattr(signal, name))
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == code
    word = "interrupted" if name == "SIGINT" else f"stopped ({name})"
    assert complaint == f"padfix: {word}; nothing was written\n"
    assert left(tmp_path) == []


def _as_in_the_foreground() -> None:
    """Undo what a shell's background jobs and nohup do: a signal that is ignored at the start stays ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def start(folder: Path, body: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        script(folder, body),
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        preexec_fn=_as_in_the_foreground,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line == "ready\n":
            return process
    raise AssertionError(process.communicate())


def test_a_signal_after_the_writing_says_so(tmp_path: Path) -> None:
    process = start(
        tmp_path, "def work():\n    watch.note_written()\n    print('ready', flush=True)\n    time.sleep(600)"
    )
    process.send_signal(signal.SIGTERM)
    _, complaint = process.communicate(timeout=30)
    assert complaint == "padfix: stopped (SIGTERM); the output had been written\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="SIGIO at the end of a pipe is Linux's")
def test_work_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    body = "def work():\n    print(os.getpid(), flush=True)\n    print('ready', flush=True)\n    re.match(*DEAF)"
    process = start(
        tmp_path, body.replace("print(os.getpid(), flush=True)", "open('pid', 'w').write(str(os.getpid()))")
    )
    worker = int((tmp_path / "pid").read_text())
    assert worker != process.pid
    process.kill()
    process.wait()
    end = time.monotonic() + 10
    while _lives(worker) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _lives(worker)
    process.communicate()


def _lives(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_terminal_shows_the_stage_and_is_tidy_after_a_crash(tmp_path: Path) -> None:
    body = """
from padfix.cli.progress import stages
def work():
    with stages() as progress:
        progress("Proving the whole model")
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGSEGV)
"""
    environment = {key: text for key, text in os.environ.items() if key not in ("CI", "NO_COLOR")}
    environment |= {"PYTHONPATH": str(ROOT), "TERM": "xterm"}
    code, shown = run_on(script(tmp_path, body), tmp_path, environment)
    assert code == 2
    assert b"Proving the whole model" in shown
    assert b"\x1b[?25l" not in shown, "the cursor is never hidden"
    assert b"\r\x1b[2Kpadfix: error:" in shown, "the line that was kept up to date is cleared"
    assert b"padfix (Proving the whole model) crashed: a segmentation fault." in shown.replace(b"\r\n", b" ")


def test_a_build_shows_nothing(tmp_path: Path) -> None:
    body = """
from padfix.cli.progress import stages
def work():
    with stages() as progress:
        progress("Proving the whole model")
    return 0
"""
    done = ask(tmp_path, body)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("written", [False, True])
def test_a_report_that_can_not_be_printed(written: bool, tmp_path: Path) -> None:
    body = f"def work():\n    {'watch.note_written()' if written else 'pass'}\n    click.echo('report')"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            script(tmp_path, body),
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    fate = "The output had been written." if written else "Nothing was written."
    assert done.stderr.startswith(f"padfix: error: The report can't be printed: No space left on device.\nhint: {fate}")
