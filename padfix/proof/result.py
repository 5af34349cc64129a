"""The proof of a result that lies in a file: by ONNX Runtime, or by the specification where ONNX Runtime can't."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from padfix.errors import NowhereRunError
from padfix.proof.executors import Executor
from padfix.proof.whole import verify
from padfix.proof.witnesses import candidates_of, in_specification
from padfix.results import Verdict


def verify_result(
    reference: Executor, path: Path, *, stand_in: Callable[[], Executor], contradicted: bool = False, **told: Any
) -> Verdict:
    """Prove that an ONNX file is equal to the original.

    Args:
        reference: Runs the original.
        path: The file.
        stand_in: Makes what runs the original in ONNX Runtime.
        contradicted: Whether ONNX Runtime runs nodes that no rewrite touched against the specification.
        told: The arguments of :func:`padfix.proof.whole.verify`.

    Raises:
        ProofUnavailableError: As there; or the result can't be loaded.
    """
    candidates, notes = candidates_of(path, reference.name, contradicted=contradicted, stand_in=stand_in)
    try:
        verdict = verify(reference, candidates, stand_in=stand_in, **told)
    except NowhereRunError as error:
        candidates, notes = in_specification(path, error.message)
        verdict = verify(reference, candidates, stand_in=stand_in, **told)
    return replace(verdict, notes=(*notes, *verdict.notes))
