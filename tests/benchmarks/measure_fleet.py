"""Measures how the cost of ``padfix check`` grows: with nodes, with files, with workers, with bytes of weights.

Run ``python -m tests.benchmarks.measure_fleet [--models N] [--nodes N...] [--weights BYTES...]``. It makes models in a
temporary folder, checks them with a cache in that folder, writes what it found to ``fleet.json`` beside this file, and
makes the table and the picture of the page on fleets of it, which ``--write`` does alone. Times are of the processor,
of all processes of a command, and of the clock: where other things run at the same time only the first say much.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from padfix.reports.pictures.svg import Picture
from tests.benchmarks.bench_check_large import write_model
from tests.benchmarks.bench_check_many import write_models
from tests.support.dask_cluster import cluster
from tests.support.long_graphs import write_long_graph

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).with_name("fleet.json")
PAGE = ROOT / "padfix" / "docs" / "fleet.md"
PICTURE = ROOT / "padfix" / "docs" / "pictures" / "fleet.svg"

# A process inherits the peak of whoever started it, so a small one in between has to start it and measure.
LAUNCHER = """
import os, resource, sys, time
start = time.perf_counter()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, 1, 0)])
_, status, usage = os.wait4(pid, 0)
print(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
"""


def check(folder: Path, *arguments: object) -> dict[str, float]:
    """Return the seconds by the clock and of the processor, and the mebibytes of the largest process, of one call."""
    command = [
        sys.executable,
        "-S",
        "-c",
        LAUNCHER,
        sys.executable,
        "-m",
        "padfix",
        "check",
        "-q",
        *map(str, arguments),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    clock, processor, size, code = map(float, done.stdout.split())
    if code not in (0, 1):  # 1: there are findings, which there should be
        raise SystemExit(f"{' '.join(command)} ended with {code}")
    return {"clock": round(clock, 2), "processor": round(processor, 2), "mebibytes": round(size / 1024)}


def processor_seconds(processes: list[subprocess.Popen[bytes]]) -> float:
    """Return the processor seconds that running processes have used."""
    ticks = 0
    for process in processes:
        words = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(words[11]) + int(words[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(models: int, nodes: list[int], weights: list[int]) -> dict[str, Any]:
    """Return all measurements."""
    found: dict[str, Any] = {"processors": os.cpu_count(), "models": models, "nodes": [], "weights": [], "files": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in nodes:
            size = write_long_graph(folder / "long.onnx", number)
            found["nodes"].append({"nodes": number, "bytes": size, **check(folder, folder / "long.onnx", "--no-cache")})
        (folder / "long.onnx").unlink(missing_ok=True)
        for size in weights:
            write_model(folder / "heavy.onnx", size)
            found["weights"].append({"bytes": size, **check(folder, folder / "heavy.onnx", "--no-cache")})
        (folder / "heavy.onnx").unlink(missing_ok=True)
        many = folder / "models"
        many.mkdir()
        write_models(many, models)

        def add(what: str, *arguments: object) -> None:
            found["files"].append({"what": what, **check(folder, many, *arguments)})

        add("one process", "--no-cache")
        add("two processes", "--no-cache", "--jobs", 2)
        with cluster(folder) as (address, workers):
            check(folder, many / "team_0", "--no-cache", "--scheduler", address)  # workers that are warm
            before = processor_seconds(workers)
            add("two workers of a cluster", "--no-cache", "--scheduler", address)
            found["files"][-1]["workers"] = round(processor_seconds(workers) - before, 2)
        add("first, keeping a cache")
        add("again, nothing changed")
        for file in many.rglob("*.onnx"):
            os.utime(file)
        add("again, in a fresh checkout")
    return found


def table(found: dict[str, Any]) -> str:
    """Return the measurements as Markdown."""
    lines = ["| What | Processor | Clock | Memory of the largest process |", "|---|---|---|---|"]
    rows = [(f"a graph of {each['nodes']:,} nodes, {each['bytes'] / 1e6:.1f} MB", each) for each in found["nodes"]]
    rows += [(f"50 convolutions with {each['bytes'] / 1e6:,.0f} MB of weights", each) for each in found["weights"]]
    rows += [(f"{found['models']:,} small models: {each['what']}", each) for each in found["files"]]
    for what, each in rows:
        processor = each["processor"] + each.get("workers", 0.0)
        lines.append(f"| {what} | {processor:.1f} s | {each['clock']:.1f} s | {each['mebibytes']:,.0f} MiB |")
    return "\n".join(lines) + "\n"


def picture(found: dict[str, Any]) -> Picture:
    """Return the processor time of each row of files as a bar, and that of each node as another."""
    rows = [
        *(
            (f"{each['nodes']:,} nodes", each["processor"] * 1e6 / each["nodes"], "µs a node")
            for each in found["nodes"]
        ),
        *(
            (each["what"], (each["processor"] + each.get("workers", 0.0)) * 1e3 / found["models"], "ms a model")
            for each in found["files"]
        ),
    ]
    said = "; ".join(f"{what} {value:.2f} {unit}" for what, value, unit in rows)
    made = Picture(f"Processor time of padfix check: {said}")
    made.text(0, 12, "Processor time of padfix check", "strong")
    for place, (what, value, unit) in enumerate(rows):
        top = 26 + 24 * place
        largest = max(each for _, each, other in rows if other == unit)
        made.text(0, top + 12, what)
        made.rectangle(190, top, max(1.0, 320 * value / largest), 16, "in" if unit.startswith("ms") else "pr")
        made.text(198 + 320 * value / largest, top + 12, f"{value:.2f} {unit}")
    return made


def pages() -> dict[Path, str]:
    """Return the page and the picture as they should be."""
    found = json.loads(DATA.read_text(encoding="utf-8"))
    marks = r"(<!-- measured:begin.*?-->\n).*?(<!-- measured:end -->)"
    text = re.sub(
        marks, lambda mark: mark[1] + table(found) + mark[2], PAGE.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    return {PAGE: text, PICTURE: picture(found).file() + "\n"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=5000)
    parser.add_argument("--nodes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--weights", type=int, nargs="*", default=[1_000_000, 1_500_000_000])
    parser.add_argument("--write", action="store_true", help="the page and the picture of what was measured before")
    options = parser.parse_args()
    if not options.write:
        DATA.write_text(json.dumps(measure(options.models, options.nodes, options.weights), indent=1) + "\n")
    for file, text in pages().items():
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
