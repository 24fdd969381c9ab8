"""Absent or null members, anywhere, are answered with findings or with objects, never with a crash."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kinds.trainer.compile.build import COMPOSITE, context, trainjob

from kohort.api import admit
from kohort.api.errors import ErrorKind
from kohort.kinds.trainer.compile.trainjob import compile_object

FILES = ["tests/golden/trainjob-composite/input.yaml", "examples/trainjob-finetune.yaml", "examples/trainjob-mpi.yaml"]
ROOT = Path(__file__).parents[4]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from _places(item, (*path, name))


def _damaged(document: Any) -> Iterator[Any]:
    for path in _places(document["spec"]):
        for removed in (False, True):
            made = deepcopy(document)
            owner = made
            for name in ("spec", *path)[:-1]:
                owner = owner[name]
            last = ("spec", *path)[-1]
            if removed:
                del owner[last]
            else:
                owner[last] = None
            yield made


@pytest.mark.parametrize("file", FILES)
def test_damaged_documents(file: str) -> None:
    documents = list(yaml.safe_load_all((ROOT / file).read_text()))
    for document in documents:
        for made in _damaged(document):
            others = [made if one is document else one for one in documents]
            ctx = context(*others, options=COMPOSITE)
            found = admit.check(made, ctx)
            if any(error.kind is ErrorKind.DECODE for error in found):
                continue
            if made["kind"] == "TrainJob":
                if not found:
                    compile_object(admit.create({**made, "metadata": {"name": "a"}}, ctx).object or {}, ctx)
            else:
                ref = {"kind": made["kind"], "name": made["metadata"]["name"]}
                job = trainjob(2, runtimeRef=ref)
                job["metadata"]["namespace"] = made["metadata"].get("namespace", "ml")
                compiled = compile_object(job, ctx)
                assert compiled.errors or compiled.objects
