"""Tests that need real Kubernetes (`make test-kubernetes`); without its binaries they skip and say how to get them."""

from kohort.testing.pytest_plugin import kubernetes_environment, kubernetes_environments, kubernetes_namespace

__all__ = ["kubernetes_environment", "kubernetes_environments", "kubernetes_namespace"]
