"""The JobSet controller (spec jobset 2, and its gangs: sections 3 and 4)."""
