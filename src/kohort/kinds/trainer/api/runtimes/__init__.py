"""The runtimes that come with Kohort, for TrainJobs that name one nobody has defined: the files of this folder."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from importlib.resources import files

import yaml

from kohort.api.kind import Object


@cache
def _loaded() -> tuple[Object, ...]:
    folder = files("kohort.kinds.trainer.api").joinpath("runtimes")
    texts = sorted((file.name, file.read_text("utf-8")) for file in folder.iterdir() if file.name.endswith(".yaml"))
    return tuple(document for _, text in texts for document in yaml.safe_load_all(text) if document)


def builtin_runtimes() -> list[Object]:
    """All of them, as ClusterTrainingRuntimes; the copies are yours."""
    return [deepcopy(runtime) for runtime in _loaded()]


def builtin_names() -> tuple[str, ...]:
    return tuple(runtime["metadata"]["name"] for runtime in _loaded())


def builtin_runtime(name: str) -> Object | None:
    return next((deepcopy(runtime) for runtime in _loaded() if runtime["metadata"]["name"] == name), None)
