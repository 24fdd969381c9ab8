"""The compiler: an object as a plan."""
