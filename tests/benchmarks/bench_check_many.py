"""Measures what one call of ``padfix check`` for a repository of models saves over a call for each of them.

Run ``python tests/benchmarks/bench_check_many.py [--models N] [--jobs N]``. The models are the fixtures, repeated with
names of their own in a temporary folder. Printed are the wall times of one call, of one call with several processes and
of N calls, each also per model.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from onnx import parser

FIXTURES = Path(__file__).parents[2] / "fixtures"


def write_models(folder: Path, number: int) -> list[Path]:
    """Write ``number`` small models with all kinds of findings."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(FIXTURES.glob("PF*/*/before.onnxtxt"))]
    paths = []
    for index in range(number):
        path = folder / f"team_{index % 10}" / f"model_{index:03}.onnx"
        path.parent.mkdir(exist_ok=True)
        model = parser.parse_model(texts[index % len(texts)])
        model.graph.name = f"model_{index}"  # so that no two are the same
        path.write_bytes(model.SerializeToString())
        paths.append(path)
    return paths


def check(*arguments: object) -> tuple[float, int]:
    """Return (wall seconds, number of findings) of one call."""
    command = [sys.executable, "-m", "padfix", "check", "--format", "json", *map(str, arguments)]
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode not in (0, 1):  # 1: there are findings, which there should be
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
    return seconds, len(json.loads(done.stdout)["findings"])


def main() -> None:
    parsed = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parsed.add_argument("--models", type=int, default=200)
    parsed.add_argument("--jobs", type=int, default=2)
    options = parsed.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write_models(folder, options.models)
        once, findings = check(folder)
        several, same = check(folder, "--jobs", options.jobs)
        apart = [check(path) for path in paths]
    separate = sum(seconds for seconds, _ in apart)
    if not findings == same == sum(number for _, number in apart):
        raise SystemExit("the calls disagree about the number of findings")
    print(f"{len(paths)} models, {findings} findings")
    rows = (("one call", once), (f"one call, --jobs {options.jobs}", several), (f"{len(paths)} calls", separate))
    for title, seconds in rows:
        per_model = seconds / len(paths) * 1e3
        print(f"{title:>20}  {seconds:7.2f} s  {per_model:7.1f} ms a model  {separate / seconds:5.1f} x")


if __name__ == "__main__":
    main()
