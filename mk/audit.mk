# Advisories about the locked packages, from the package index. ARGS=--if-reachable: say so where it cannot be asked.
.PHONY: audit

audit: $(READY) ## known weaknesses of all locked packages, as the package index publishes them
	@$(BIN)/python -m hack.audit $(ARGS)
