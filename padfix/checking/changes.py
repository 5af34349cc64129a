"""Which files a branch or a working tree changed, as git knows it: so that a build checks these alone."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from padfix.errors import UsageError

_HINT = "Name a branch, a tag or a commit of this repository that is here (a shallow clone may lack it)."


def changed_since(reference: str, paths: Sequence[Path]) -> list[Path]:
    """Return those of ``paths`` that differ from where the current commit and ``reference`` parted.

    What is not committed yet counts, and so do files that git does not know. A file outside the repository is kept:
    nothing is known of it.

    Raises:
        UsageError: There is no git, no repository, or no such commit.
    """
    top = Path(_git("rev-parse", "--show-toplevel").strip()).resolve()
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}").strip()
    base = _git("merge-base", commit, "HEAD").strip()
    listed = _git("-C", str(top), "diff", "--name-only", "-z", "--diff-filter=d", base)
    listed += _git("-C", str(top), "ls-files", "--others", "-z")
    changed = {top / name for name in listed.split("\0") if name}
    return [path for path in paths if not path.resolve().is_relative_to(top) or path.resolve() in changed]


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, check=True)
    except FileNotFoundError as error:
        raise UsageError("git is not installed, so it can't say what changed.", "Leave out --changed-since.") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        reason = said[-1] if said else "it names no commit"
        raise UsageError(f"git can't say what changed: {reason}.", _HINT) from error
    return done.stdout.decode("utf-8", "surrogateescape")
