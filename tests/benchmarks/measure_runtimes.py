"""Runs the battery on the installed runtimes, as written and as ``padfix convert --target`` writes it.

    python -m tests.benchmarks.measure_runtimes [RUNTIME...]
    python -m tests.support.runtime_pages

The first adds what it finds to ``padfix/docs/measured/data.json``, under the runtime and its version; others that
are there stay, so that it can be run in several environments. The second writes the pages from that.
"""

from __future__ import annotations

import argparse
import datetime
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import padfix
from padfix.errors import PadfixError, ProofUnavailableError
from padfix.proof.runtime_runs import NODE, difference_of
from padfix.proof.spec_executor import SpecExecutor
from padfix.runtimes import Runtime, names, open_runtime
from padfix.targets import named
from tests.benchmarks.runtime_battery import Case, cases, feeds
from tests.support.runtime_pages import DATA


def main() -> None:
    """Measure what is installed, or the runtimes that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runtimes", nargs="*")
    told = parser.parse_args()
    for name in told.runtimes or names():
        try:
            runtime = open_runtime(name)
        except ProofUnavailableError as error:
            print(error)
            continue
        _measure(runtime)
        runtime.close()


def _measure(runtime: Runtime) -> None:
    version = runtime.label.partition(" ")[2]
    target = target_of(runtime)
    results: dict[str, dict[str, str]] = {}
    for case in cases():
        results[case.name] = {"family": case.family, **of_case(runtime, case, target)}
        print(runtime.label, case.name, *results[case.name].values(), sep=" | ", flush=True)
    content: dict[str, Any] = json.loads(DATA.read_text()) if DATA.exists() else {"runtimes": {}}
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    content["runtimes"][runtime.label] = {
        "runtime": runtime.name,
        "version": version,
        "target": target,
        "date": date,
        "results": results,
    }
    content["runtimes"] = dict(sorted(content["runtimes"].items()))
    DATA.parent.mkdir(exist_ok=True)
    DATA.write_text(json.dumps(content, indent=1) + "\n")


def target_of(runtime: Runtime) -> str:
    """Return the target of a runtime, of its version where facts differ by version."""
    name, _, version = runtime.label.partition(" ")
    known = [each for each in named(name).versions if version.startswith(each) or each.startswith(version)]
    return f"{name}@{known[0]}" if len(named(name).versions) > 1 and known else name


def of_case(runtime: Runtime, case: Case, target: str) -> dict[str, str]:
    """Return what the runtime makes of a model as written and as padfix writes it."""
    data = feeds(case)
    expected = SpecExecutor(case.model.SerializeToString()).run(data)
    before, said = _judged(runtime, case.model.SerializeToString(), data, expected)
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "source.onnx"), Path(folder, "output.onnx")
        onnx.save(case.model, source)
        try:
            padfix.convert(source, output, target=target, reference="spec")
        except PadfixError as error:
            return {"before": before, "after": "declined", "form": "", "said": error.message[:200]}
        written = onnx.load(output)
    after, found = _judged(runtime, written.SerializeToString(), data, expected)
    form = " + ".join(node.op_type for node in written.graph.node if node.op_type != "Constant")
    return {"before": before, "after": after, "form": form, "said": (found or said)[:200]}


def _judged(
    runtime: Runtime, model: bytes, data: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]
) -> tuple[str, str]:
    found = runtime.run(model, data, [array.shape for array in expected.values()])
    if isinstance(found, str):
        return "refused", found
    for array, right in zip(found, expected.values(), strict=True):
        difference, allowed = difference_of(array, right, NODE * runtime.rounding, 0.0)
        if not difference <= allowed:
            return "wrong", f"{difference:.3g} off"
    return "right", ""


if __name__ == "__main__":
    main()
