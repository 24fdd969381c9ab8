"""matchConditions of webhooks, compiled once for each text. Imported by the first configuration that has some."""

from __future__ import annotations

from functools import lru_cache

from kohort.server.admission.policies import environment as env


@lru_cache(maxsize=256)
def compiled(texts: tuple[str, ...]) -> tuple[env.CompiledExpression, ...]:
    found = env.Environment(False)
    return tuple(found.compiled(text, env.CONDITION) for text in texts)
