"""The placement engine: which pods go where, decided on arrays. Pure: no I/O, no clock, no asyncio.

Nodes are rows, resources are columns of int64. Pods that ask for the same share a signature, and signatures, not pods,
are what is filtered and scored. Floating point decides nothing; ties go to the lowest row.
"""
