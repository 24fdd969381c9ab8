"""Rules for the kinds that own pods: what their operator means to start together."""
