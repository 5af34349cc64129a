"""PF304: a model that the required proof does not prove."""

from __future__ import annotations

from collections.abc import Iterator

from padfix.graph.scopes import Scope
from padfix.results import Finding, Severity
from padfix.rules.base import Correction, ScopeRule
from padfix.targets import Target


class UnprovenModel(ScopeRule):
    """The proof that `check` was told to require is not one of this very file.

    Asked only with `padfix check --require-proof REPORT`, where REPORT is the JSON report of `padfix convert` or
    `padfix verify`, or its signed attestation. The message says what is missing. A proof counts when

    - it passed, and the SHA-256 of the model and of its data files are those that it names as its result;
    - what it was compared with is not the model itself, unless a conversion found nothing to rewrite, or the source is
      pinned (`--proof-source`) and is just that;
    - its tolerances are the documented defaults or tighter, and it did not go by the user's probes alone
      (`--allow-loose-proof` takes it all the same);
    - its source is the one of `--proof-source FILE|SHA256`, where that is said;
    - the report is as it was written. Its digest is a checksum, which whoever edits a report can compute anew; where
      that matters, sign it (`--sign`) and name the key (`--verify-key`).

    It can't be left out by `--ignore`, by a baseline or in the configuration file.

    References:

    - The envelope of a signed report: <https://github.com/secure-systems-lab/dsse>
    - The statement inside it: <https://github.com/in-toto/attestation>
    """

    code = "PF304"
    name = "unproven-model"
    severity = Severity.ERROR
    fixable = False

    def examine(self, scope: Scope, target: Target) -> Iterator[Correction]:
        """Yield nothing: the graph alone says nothing of a proof."""
        yield from ()

    def has_a_say(self, target: Target) -> bool:
        """Return False: no target makes a proof required."""
        return False

    def unproven(self, reason: str) -> Finding:
        """Return the finding about a model that is not proven, for a ``reason`` without its full stop."""
        return Finding(
            self.code,
            self.name,
            self.severity,
            "main",
            "(whole model)",
            "",
            f"The model is not proven: {reason}.",
            fixable=False,
            hint="Convert or verify it again with --report FILE.json, and require that report.",
        )
