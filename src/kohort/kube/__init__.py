"""One asynchronous client for every Kubernetes API server, ours included: in process, over HTTPS, or real."""
