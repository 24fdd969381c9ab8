"""Both schedulers in turn on a fresh kube-apiserver: from pods that wait to pods that have nodes."""
