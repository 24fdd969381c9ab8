# Real Kubernetes to test against: built once from published Go modules, then found in the cache.
# K8S="1.37 1.36 1.35" asks for several versions.
K8S ?= 1.37

.PHONY: kubernetes test-kubernetes

kubernetes: $(READY) ## binaries of real Kubernetes (K8S=1.36 for another); about ten minutes, once
	@$(BIN)/python -m kohort.testing.bed build $(K8S)

test-kubernetes: $(READY) ## all tests that need real Kubernetes; without Go they skip and say so
	@$(BIN)/python -m kohort.testing.bed build --if-possible $(K8S)
	KOHORT_KUBERNETES="$(K8S)" $(BIN)/pytest -q tests/kubernetes
