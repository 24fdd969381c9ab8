"""Who is behind a Service: its EndpointSlices, and the Endpoints of older clients."""
