# Kohort beside kube-scheduler on real Kubernetes. ARGS="--only GangScheduling" is passed on; everything takes over an hour.
.PHONY: bench-e2e

bench-e2e: $(READY) ## Kohort and kube-scheduler in turn on a fresh kube-apiserver: a table (ARGS="--only 1000Nodes")
	@$(BIN)/python -m kohort.testing.environment build 1.37
	@$(BIN)/python -m bench.e2e $(ARGS)
