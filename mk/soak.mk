# kohort run beside a server for a long time, gangs coming and going: is its memory flat? KOHORT_SOAK minutes.
.PHONY: soak

soak: $(READY) ## memory of kohort run while gangs come and go: KOHORT_SOAK=30 minutes (5 unless said)
	@$(BIN)/python -m tests.soak
