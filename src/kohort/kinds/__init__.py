"""One folder for each family of workload kinds: its API, its compiler, its controllers, its admission."""
