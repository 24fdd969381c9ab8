"""ReplicaSets, and ReplicationControllers, which differ in how their selector is written."""
