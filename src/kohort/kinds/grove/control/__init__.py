"""Grove's controllers: PodCliqueSet, PodCliqueScalingGroup, PodClique, PodGang, ClusterTopologyBinding (spec grove)."""
