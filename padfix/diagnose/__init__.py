"""Words and pictures for a difference that the proof found."""
