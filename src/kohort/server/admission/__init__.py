"""Admission: the plugins between the decoding of a write and the store. `chain` lists them in upstream's order."""
