"""The Job controller (spec job 6, and its groups: sections 1 to 5). Only `sync` yields writes; the rest computes."""
