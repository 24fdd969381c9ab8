"""`make demo`: a cluster in this process, a few workloads on it, and whether what was promised happened."""
