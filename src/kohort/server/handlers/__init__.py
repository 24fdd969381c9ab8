"""The verbs of a resource, one module each: create, get and list, update, patch, delete, watch; and subresources."""
