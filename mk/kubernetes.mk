# Real Kubernetes to test against: built once from published Go modules, then found in the cache.
# K8S="1.37 1.36 1.35" asks for several versions.
K8S ?= 1.37

# The end-to-end tests that test-kubernetes runs on it: some of every kind, in about six minutes on two cores.
# E2E=tests/e2e asks for all of them. Each worker has a Kubernetes of its own, and mostly waits.
E2E     ?= $(addprefix tests/e2e/test_,whole_cluster.py three_layers.py explain.py job_groups.py job_found.py \
  jobset_gangs.py jobset_placement.py jobset_admission.py trainjob_stories.py trainjob_groups.py grove_story.py \
  lws_gang.py lws_placement.py healing.py healing_random.py)
WORKERS ?= 3

.PHONY: kubernetes test-kubernetes test-e2e-kubernetes

kubernetes: $(READY) ## binaries of real Kubernetes (K8S=1.36 for another); about ten minutes, once
	@$(BIN)/python -m kohort.testing.environment build $(K8S)

test-kubernetes: $(READY) ## all tests that need real Kubernetes; without Go they skip and say so
	@$(BIN)/python -m kohort.testing.environment build --if-possible --helm $(K8S)
	KOHORT_KUBERNETES="$(K8S)" $(BIN)/pytest -q -n $(WORKERS) --dist loadfile tests/kubernetes
	@$(MAKE) --no-print-directory test-e2e-kubernetes

test-e2e-kubernetes: $(READY) ## the end-to-end tests of make test, on real Kubernetes with kohort run beside it
	@$(BIN)/python -m kohort.testing.environment build --if-possible $(K8S)
	KOHORT_KUBERNETES="$(K8S)" KOHORT_E2E=kubernetes $(BIN)/pytest -q -n $(WORKERS) --dist worksteal $(E2E)
