"""Programs that stand in for kube-apiserver and etcd in controller-runtime's envtest, and the folder they are in."""
