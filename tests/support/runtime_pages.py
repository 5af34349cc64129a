from pathlib import Path

DATA = Path(__file__).parents[2] / "padfix" / "docs" / "runtimes" / "measured.json"
