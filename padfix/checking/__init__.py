"""What turns findings into a gate: discovery, baselines, certificates."""
