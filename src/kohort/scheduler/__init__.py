"""The scheduler around the placement engine.

Pure parts (no asyncio, no I/O, time passed in): `model`, `trees`, `queue`, `validate`, `cache`, `decide`,
`conditions`, `core`. The shell that talks to an API server: `binder`, `writer`, `loop`.
"""
