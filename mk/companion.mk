# Operators of other people, built from their published Go modules into the cache, unmodified, beside `kohort run` on a real
# Kubernetes. ARGS="--workloads 50 --seed 7" is passed on.
.PHONY: companion companion-bed

companion: $(READY) ## real JobSet, LeaderWorkerSet, KubeRay and training operators beside kohort run: samples, then random workloads
	@$(BIN)/python -m kohort.testing.environment build $(K8S)
	@$(BIN)/python -m tests.support.operators --build-only
	$(BIN)/pytest -q tests/kubernetes/test_operators.py
	@$(BIN)/python -m tests.support.operators $(ARGS)

companion-bed: $(READY) ## a real Kubernetes with upstream's JobSet and KubeRay managers and two virtual nodes, until Ctrl-C (docs/companion.md)
	@$(BIN)/python -m kohort.testing.environment build $(K8S)
	@$(BIN)/python -m tests.support.operators.stay $(ARGS)
