"""Upstream Kubernetes' own end-to-end tests, run against Kohort's control plane (`make conformance`)."""
