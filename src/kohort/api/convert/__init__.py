"""Conversion of Workload, PodGroup, CompositePodGroup and pod membership between generations."""
