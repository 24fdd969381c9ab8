"""Volumes and claims: binding, provisioning, reclaiming, and the protection of what is in use."""
