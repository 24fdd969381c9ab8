"""For tests of whatever speaks to Kubernetes: pytest fixtures, the embedded server, real Kubernetes on loopback."""
