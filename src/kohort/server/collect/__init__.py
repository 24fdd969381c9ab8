"""What the server does by itself: garbage, namespaces, pods and groups on their way out."""
