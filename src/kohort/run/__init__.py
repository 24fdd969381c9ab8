"""`kohort run`: the controllers and the scheduler beside a Kubernetes that somebody else runs."""
