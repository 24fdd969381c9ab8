"""Reading configuration field by field: every wrong one is remembered with its file and place, none stops the rest."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kohort.kube.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECRET: Final = frozenset({"token", "password", "client-key-data"})


@dataclass
class Problems:
    """What is wrong, all of it; raised once."""

    found: list[str] = field(default_factory=list)

    def add(self, place: str, problem: str) -> None:
        line = f"{place}: {problem}"
        if line not in self.found:
            self.found.append(line)

    def check(self) -> None:
        if self.found:
            raise ConfigError("\n".join(self.found))


@dataclass(frozen=True)
class Section:
    """A mapping in a file. Relative paths in it start from the folder of that file."""

    file: Path
    path: str
    value: dict[str, Any]
    problems: Problems

    def place(self, name: str) -> str:
        return f"{self.file}: {self.path}.{name}" if self.path else f"{self.file}: {name}"

    def wrong(self, name: str, problem: str) -> None:
        self.problems.add(self.place(name), problem)

    def text(self, name: str) -> str:
        return str(self._typed(name, str, "a string") or "")

    def flag(self, name: str) -> bool:
        return bool(self._typed(name, bool, "true or false"))

    def texts(self, name: str) -> list[str]:
        found = self._typed(name, list, "a list of strings") or []
        if not all(isinstance(one, str) for one in found):
            self.wrong(name, f"found {_shown(found)}, accepted is a list of strings")
            return []
        return list(found)

    def section(self, name: str) -> Section | None:
        """None if the field is absent or empty."""
        found = self._typed(name, dict, "a mapping")
        return Section(self.file, f"{self.path}.{name}" if self.path else name, found, self.problems) if found else None

    def sections(self, name: str) -> Iterator[Section]:
        """The mappings of a list."""
        for index, one in enumerate(self._typed(name, list, "a list of mappings") or []):
            inner = f"{self.path}.{name}[{index}]" if self.path else f"{name}[{index}]"
            if isinstance(one, dict):
                yield Section(self.file, inner, one, self.problems)
            else:
                self.problems.add(f"{self.file}: {inner}", f"found {_shown(one)}, accepted is a mapping")

    def file_path(self, name: str) -> Path | None:
        written = self.text(name)
        return self.file.parent / Path(written).expanduser() if written else None

    def bytes_of(self, name: str) -> bytes | None:
        """`name-data` (base64) if given, else the content of the file `name`; None if neither is given."""
        data = self.text(f"{name}-data")
        if data:
            try:
                return base64.b64decode(data, validate=True)
            except binascii.Error as error:
                self.wrong(f"{name}-data", f"not base64 ({error}); accepted is PEM text in base64")
                return None
        path = self.file_path(name)
        if path is None:
            return None
        try:
            return path.read_bytes()
        except OSError as error:
            self.wrong(name, f"cannot read {path}: {error.strerror}; accepted is a readable file in PEM form")
            return None

    def _typed(self, name: str, kind: type, accepted: str) -> Any:
        found = self.value.get(name)
        if found is not None and not isinstance(found, kind):
            shown = f"something that is not shown ({type(found).__name__})" if name in _SECRET else _shown(found)
            self.wrong(name, f"found {shown}, accepted is {accepted}")
            return None
        return found


def _shown(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
