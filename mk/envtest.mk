# Integration tests of operators in Go (checkouts of them) on Kohort, through controller-runtime's envtest.
# SUITES="../jobset ../lws"; ARGS="--only controller --nice 15" is passed on.
.PHONY: envtest-suites

envtest-suites: $(READY) ## other people's envtest suites on Kohort: SUITES="../jobset ../lws" (needs Go)
	@$(BIN)/python -m tests.support.envtest_suites $(ARGS) $(SUITES)
