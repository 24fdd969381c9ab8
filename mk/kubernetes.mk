# Real Kubernetes to test against: built once from published Go modules, then found in the cache.
K8S ?= 1.37

.PHONY: kubernetes test-kubernetes

kubernetes: $(READY) ## binaries of real Kubernetes (K8S=1.36 1.35 for others); ten minutes, once
	@$(BIN)/python -m kohort.testing.bed build $(K8S)

test-kubernetes: kubernetes ## all tests that need real Kubernetes
	$(BIN)/pytest -q tests/kubernetes
