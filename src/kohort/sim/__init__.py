"""Virtual nodes: kubelets that run no containers, thousands in one process, against any API server."""
