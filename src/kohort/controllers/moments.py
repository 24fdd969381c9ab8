"""Moments in objects: read from RFC 3339, written in whole seconds as the API does."""

from __future__ import annotations

from datetime import UTC, datetime


def read(text: str | None) -> datetime | None:
    if not text:
        return None
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def write(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def whole(moment: datetime) -> datetime:
    """As it is after having been stored."""
    return moment.replace(microsecond=0)
