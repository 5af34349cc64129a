"""``python -m tests.fuzz``: mutates fixtures for a while and keeps every file that gets a bad answer.

Each file is thrown at ``check``, ``convert --no-verify`` and ``convert``, each in a process of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.fuzz.judge import ask
from tests.fuzz.mutation import mutate
from tests.fuzz.seeds import seeds

COMMANDS = (
    ("check", "--untrusted", "model.onnx"),
    ("convert", "--no-verify", "--untrusted", "model.onnx", "-o", "out.onnx"),
    ("convert", "--reference", "spec", "--untrusted", "model.onnx", "-o", "out.onnx"),
    ("convert", "--untrusted", "model.onnx", "-o", "out.onnx"),
    ("inspect", "--untrusted", "model.onnx"),
    ("verify", "--locate", "--untrusted", "model.onnx", "model.onnx"),
)


def main() -> int:
    """Fuzz until the time is over; return 1 when something was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=300)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="where bad files are kept")
    given = options.parse_args()
    random = Random(given.seed)
    end = time.monotonic() + given.seconds
    codes: Counter[tuple[str, int]] = Counter()
    found = 0
    slowest = largest = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        while time.monotonic() < end:
            data = mutate(random.choice(seeds()), random)
            (folder / "model.onnx").write_bytes(data)
            for command in COMMANDS:
                answer = ask(command, folder)
                codes[" ".join(command[:2]), answer.code] += 1
                slowest, largest = max(slowest, answer.seconds), max(largest, answer.mebibytes)
                complaint = answer.complaint()
                if complaint is None and (folder / "model.onnx").read_bytes() != data:
                    complaint = "the input was changed"
                if complaint is not None:
                    found += 1
                    given.keep.mkdir(exist_ok=True)
                    kept = given.keep / f"{hashlib.sha256(data).hexdigest()[:12]}.onnx"
                    kept.write_bytes(data)
                    print(f"{kept} {' '.join(command)}: {complaint}", flush=True)
                if answer.code == 2 and command[0] == "check":
                    break
    print(f"{sum(codes.values())} runs, {found} bad; slowest {slowest:.1f} s, largest {largest:.0f} MiB; {dict(codes)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
