"""The proof that two models agree: probes, executors, comparison, the local proof and the whole proof."""
