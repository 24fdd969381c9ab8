"""The admission webhook of a cluster: what the embedded server's admission does by itself, asked by kube-apiserver."""
