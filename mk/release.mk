# The files of a release, their checksums and a signature. KEY: an SSH key of deploy/allowed_signers; PGP_KEY: optional.
.PHONY: release

release: $(READY) ## wheel, source, chart, manifests, bill of materials, checksums, signed: KEY=~/.ssh/kohort-release
	@test -n "$(KEY)" || { echo 'which key signs? make release KEY=~/.ssh/kohort-release'; exit 1; }
	@$(BIN)/python -m hack.release --key '$(KEY)' --pgp-key '$(PGP_KEY)'
