# A hostile tenant against `kohort up` while another tenant's gangs have to start. ARGS is passed on; a whole run:
# make abuse ARGS="--objects 10000 --requests 100000 --kills 200"
# --target run, --target kubernetes: kohort run beside a bare server, or beside a real one
.PHONY: abuse

abuse: $(READY) ## hostile objects, fuzzed requests and kills against kohort up or run, while another tenant's gangs must start
	@$(BIN)/python -m tests.abuse $(ARGS)
