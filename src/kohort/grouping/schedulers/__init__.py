"""What pods say to other schedulers: their group objects, labels and annotations."""
