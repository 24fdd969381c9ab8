"""Logs for machines: one JSON object for each line, with the facts of a decision as fields of their own."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
FACTS: Final = "facts"  # the name under which `extra` carries them


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FACTS, {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def line(text: str, facts: Mapping[str, object] | None = None) -> str:
    """What is said without a logger, whatever the level."""
    record = logging.LogRecord("kohort", logging.INFO, "", 0, text, None, None)
    setattr(record, FACTS, facts or {})
    return JsonLines().format(record)


def configure(level: int, *, json: bool) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if json else logging.Formatter(TEXT))
    logging.basicConfig(level=level, handlers=[handler])
