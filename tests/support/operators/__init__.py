"""Operators of other people, built from their published Go modules and run unmodified beside `kohort run`.

`make companion` builds them (once, some minutes each) and plays what docs/companion.md promises on a real Kubernetes:
samples that their projects publish, and random workloads on a half-full cluster with nodes that are lost.
"""
