"""How a PodCliqueSet becomes gangs: names, expansion, topology, PodGangs, and the two mappings onto groups."""
