"""What every Kubernetes API rests on and no kind owns."""
