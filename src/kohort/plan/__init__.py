"""What would happen if objects were submitted now: a copy of the cluster is run in virtual time, nothing is written.

The copy is an embedded cluster: the API server, controllers and scheduler of `kohort up`, with the nodes, pods, groups,
budgets and quotas of the cluster that was asked about.
"""
