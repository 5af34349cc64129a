"""Measures that linting costs nothing for weights: ``padfix check`` on 1.5 GB of weights and on a 1 MB twin.

Run ``python tests/benchmarks/bench_check_large.py [--repeat N] [--read-only]``. It makes both models in a temporary
folder, runs each command in processes of its own, and prints the best wall time and the largest peak memory.
``--read-only`` measures the reader alone in place of the whole command.

Goals: large within 1.25 times the time of small and under 150 MiB; small within 1.6 times a bare ``import onnx``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from onnx import TensorProto, helper

from padfix.files.wire_format import INITIALIZER, RAW_DATA, length_header

LAYERS = 50
READ = "import sys, pathlib; from padfix.files.skeleton import read_model; read_model(pathlib.Path(sys.argv[1]))"


def write_model(path: Path, total: int) -> None:
    """Write a chain of SAME convolutions whose kernels hold ``total`` bytes together, streaming."""
    size = 3
    channels = max(1, round((total / LAYERS / 4 / size / size) ** 0.5))
    payload = channels * channels * size * size * 4
    nodes = [
        helper.make_node("Conv", [f"x{i}", f"w{i}"], [f"x{i + 1}"], name=f"conv{i}", auto_pad="SAME_UPPER")
        for i in range(LAYERS)
    ]
    shape = [1, channels, 28, 28]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x0", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(f"x{LAYERS}", TensorProto.FLOAT, shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    headers = []
    for i in range(LAYERS):
        tensor = TensorProto(name=f"w{i}", dims=[channels, channels, size, size], data_type=TensorProto.FLOAT)
        inner = tensor.SerializeToString() + length_header(RAW_DATA, payload)
        headers.append(length_header(INITIALIZER, len(inner) + payload) + inner)
    body = graph.SerializeToString()
    length = len(body) + sum(len(header) + payload for header in headers)
    model.ClearField("graph")
    block = os.urandom(1 << 20)
    with path.open("wb") as file:
        file.write(model.SerializeToString() + length_header(7, length) + body)
        for header in headers:
            file.write(header)
            for start in range(0, payload, len(block)):
                file.write(block[: min(len(block), payload - start)])


# A process inherits the peak of whoever started it, so a small one in between has to start it and measure.
LAUNCHER = """
import os, sys, time
start = time.perf_counter()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, 1, 0)])
_, status, usage = os.wait4(pid, 0)
print(time.perf_counter() - start, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
"""


def measure(command: list[str], repeat: int) -> tuple[float, float]:
    """Return (best wall seconds, largest peak MiB) of a command run ``repeat`` times."""
    best, peak = float("inf"), 0.0
    unit = 1 if sys.platform == "darwin" else 1024
    for _ in range(repeat):
        launched = subprocess.run(
            [sys.executable, "-S", "-c", LAUNCHER, *command], stdout=subprocess.PIPE, text=True, check=True
        )
        seconds, size, code = launched.stdout.split()
        best, peak = min(best, float(seconds)), max(peak, int(size) * unit / 2**20)
        if int(code) not in (0, 1):  # 1: there are findings, which there should be
            raise SystemExit(f"{' '.join(command)} ended with {code}")
    return best, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--read-only", action="store_true")
    parser.add_argument("--bytes", type=int, default=1_500_000_000)
    options = parser.parse_args()
    command = [sys.executable, "-c", READ] if options.read_only else [sys.executable, "-m", "padfix", "check"]
    with tempfile.TemporaryDirectory() as name:
        small, large = Path(name, "small.onnx"), Path(name, "large.onnx")
        write_model(small, 1_000_000)
        write_model(large, options.bytes)
        floor = measure([sys.executable, "-c", "import onnx"], options.repeat)
        results = [measure([*command, str(path)], options.repeat) for path in (small, large)]
        for title, (seconds, peak) in zip(
            ("import onnx", f"{small.stat().st_size:,} bytes", f"{large.stat().st_size:,} bytes"),
            (floor, *results),
            strict=True,
        ):
            print(f"{title:>22}  {seconds:6.3f} s  {peak:6.1f} MiB")
        print(f"large / small {results[1][0] / results[0][0]:.2f}, small / import onnx {results[0][0] / floor[0]:.2f}")


if __name__ == "__main__":
    main()
