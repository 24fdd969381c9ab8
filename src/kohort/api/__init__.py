"""The kinds Kohort speaks: their fields, defaults, rules, columns and versions. Pure: no I/O, no clock."""
