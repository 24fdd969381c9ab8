"""A hostile tenant against `kohort up`, while another tenant's gangs have to start: `make abuse`."""
