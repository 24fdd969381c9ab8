"""Controllers of Kubernetes' own kinds that a real cluster's kube-controller-manager runs.

`kohort up` has no kube-controller-manager, so these run there, beside the controllers of workload kinds. `kohort run`
never starts them, and `kohort up --bare` has none. A controller is one package or module here and one line in
`registry`.
"""
