# The documentation site: docs/ as HTML in build/site, by tools of their own environment (requirements-docs.lock).
DOCS_VENV := build/docs-venv
DOCS_RUN  := $(DOCS_VENV)/.ready-$(shell cat requirements-docs.lock | cksum | cut -d' ' -f1)

.PHONY: docs docs-lock

docs: $(DOCS_RUN) ## the documentation site, in build/site
	@$(DOCS_VENV)/bin/python -m hack.site

$(DOCS_RUN): requirements-docs.lock
	@$(PYTHON) -m venv $(DOCS_VENV)
	$(call dots,packages that the site needs go into $(DOCS_VENV) (once),$(DOCS_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-docs.lock)
	@rm -f $(DOCS_VENV)/.ready-* && touch $@

docs-lock: | $(BIN)/python ## choose a newer generator of the site; write requirements-docs.lock
	@$(PIP) pip-tools
	@echo zensical > build/docs.in
	$(BIN)/pip-compile --quiet --upgrade --strip-extras --no-header --no-emit-index-url --no-emit-find-links \
	  --no-emit-trusted-host --generate-hashes --output-file requirements-docs.lock build/docs.in
