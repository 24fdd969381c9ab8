"""Deployments: ReplicaSets of successive templates, the newest of which takes over from the others."""
