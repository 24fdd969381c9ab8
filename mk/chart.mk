# The Helm chart, with the real helm: built once from its published Go module, then found in the cache.
.PHONY: chart-test manifests image wheels-arm64 image-arm64

# The Python of deploy/Containerfile, and the C libraries that its base image has.
ARM64 := --platform manylinux2014_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux_2_27_aarch64 \
  --platform manylinux_2_28_aarch64 --implementation cp --python-version 3.13 --abi cp313 --abi abi3 --abi none

chart-test: $(READY) ## the Helm chart: lint, every value, install to uninstall on the embedded server and on real Kubernetes
	@$(BIN)/python -m kohort.testing.environment build --if-possible --helm $(K8S)
	KOHORT_KUBERNETES="$(K8S)" $(BIN)/pytest -q -n 2 tests/kubernetes/test_chart*.py

manifests: $(READY) ## deploy/kustomize/kohort.yaml anew, from the chart
	@$(BIN)/python -m hack.manifests

image: ## the image, built and run by buildah or podman (apt install buildah; debootstrap where there is no registry)
	@hack/image.sh

wheels-arm64: $(READY) ## whether every package of the image has a wheel for linux/arm64, with the hash that is locked
	@folder=$$(mktemp -d) && $(BIN)/pip download --quiet --no-deps --require-hashes --only-binary=:all: $(ARM64) \
	  --dest $$folder -r requirements-run.lock && ls $$folder | wc -l && rm -r $$folder

image-arm64: $(READY) ## the image's file system for linux/arm64, put together and run by an emulator (apt install debootstrap qemu-user-static)
	@PYTHON=$(abspath $(BIN))/python hack/arm64.sh
