"""Who asks (certificates, tokens, impersonation) and what they may do (RBAC as Kubernetes decides it)."""
