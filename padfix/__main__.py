"""``python -m padfix``: the same as the command ``padfix``."""

from __future__ import annotations

from padfix.cli import main

if __name__ == "__main__":
    main()
