# Upstream's own end-to-end tests against `kohort up`. ARGS="--wide --only Watchers" is passed on.
.PHONY: conformance

conformance: $(READY) ## upstream's end-to-end tests of Kubernetes 1.37 against kohort up (needs Go; builds for ten minutes, once)
	@$(BIN)/python -m tests.support.conformance $(ARGS)
