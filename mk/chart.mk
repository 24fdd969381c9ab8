# The Helm chart, with the real helm: built once from its published Go module, then found in the cache.
.PHONY: chart-test manifests

chart-test: $(READY) ## the Helm chart: lint, every value, install to uninstall on the embedded server and on real Kubernetes
	@$(BIN)/python -m kohort.testing.environment build --if-possible --helm $(K8S)
	KOHORT_KUBERNETES="$(K8S)" $(BIN)/pytest -q -n 2 tests/kubernetes/test_chart*.py

manifests: $(READY) ## deploy/kustomize/kohort.yaml anew, from the chart
	@$(BIN)/python -m hack.manifests
