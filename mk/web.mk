# The dashboard: its pictures in docs/images, by the test that drives a browser through it.
AXE_VERSION ?= 4.14.0
AXE := $(HOME)/.cache/kohort/axe-core-$(AXE_VERSION)/package/axe.min.js

.PHONY: pictures
pictures: $(READY) $(AXE) ## Drive Chromium through the dashboard, ask axe-core, keep the pictures (needs chromium and npm)
	KOHORT_AXE=$(AXE) KOHORT_PICTURES=docs/images KOHORT_DASHBOARD_NODES=5000 $(BIN)/pytest -s tests/web

$(AXE):
	mkdir -p $(dir $(AXE))
	cd $(dir $(AXE))/.. && npm pack axe-core@$(AXE_VERSION) && tar xzf axe-core-$(AXE_VERSION).tgz
