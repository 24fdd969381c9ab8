"""aiohttp without its client, for a process that only serves.

`import aiohttp` loads the client, which reads every certificate that the machine trusts: a tenth of a second that a
server has no use for. Here the parts that serve are imported alone; whoever asks the package for anything else
(`aiohttp.ClientSession`, a webhook's call) gets the rest of it loaded then.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_PACKAGE: Final = "aiohttp"
_SERVING: Final = ("web_protocol", "web_request", "web_response", "web_server", "web_exceptions")


class _Unfinished(ModuleType):
    """The package, whose own code has not run yet. Only names that it lacks come here."""

    def __getattr__(self, name: str) -> Any:
        self.__class__ = ModuleType  # type: ignore[assignment]
        spec = self.__spec__
        assert spec is not None
        assert spec.loader is not None
        spec.loader.exec_module(self)
        return getattr(self, name)


def serving() -> None:
    """Before anything imports aiohttp; afterwards it has no effect."""
    if _PACKAGE in sys.modules:
        return
    spec = importlib.util.find_spec(_PACKAGE)
    version = re.search(r'^__version__ = "(.+)"', Path(spec.origin).read_text()) if spec and spec.origin else None
    if spec is None or version is None:
        return
    package = importlib.util.module_from_spec(spec)
    package.__version__ = version[1]  # type: ignore[attr-defined]
    sys.modules[_PACKAGE] = package
    try:
        for name in _SERVING:
            import_module(f"{_PACKAGE}.{name}")
    except ImportError:  # its parts need each other in a way that we do not know: all of it, then
        for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
            del sys.modules[name]
        return
    package.__class__ = _Unfinished
