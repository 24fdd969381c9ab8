"""The embedded API server: Kubernetes' API in one process, durable in one SQLite file."""
