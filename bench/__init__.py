"""Benchmarks with a promise attached. `python -m bench` runs them all and fails if a promise is broken."""
