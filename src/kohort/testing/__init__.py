"""What tests need and users never import: real Kubernetes on loopback, a recorder, a generator of requests."""
