"""DaemonSets: one pod on every node that suits."""
