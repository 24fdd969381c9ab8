"""Settings of all tests: a busy machine decides none of them."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "kohort", parent=settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("kohort")
