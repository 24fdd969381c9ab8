"""YAML in bodies: as a server reads it, and as it writes it. Apart, since most clients never send any."""

from __future__ import annotations

import json
from typing import Any

import yaml

from kohort.server.status import bad_request


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """YAML as a server reads it: the last of several equal keys counts, each of them is warned of."""

    warnings: list[str]


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    loader.flatten_mapping(node)
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        text = key if isinstance(key, str) else json.dumps(key)
        if text in found:
            loader.warnings.append(f'line {key_node.start_mark.line + 1}: key "{text}" already set in map')
        found[text] = loader.construct_object(value_node, deep=True)
    return found


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: loader.construct_scalar(node))


def load(body: bytes, kind: str, most: int) -> tuple[Any, list[str]]:
    """The value, and what is odd about it. `most`: levels of nesting."""
    try:
        _check_events(body, most)
        loader = _Loader(body)
        loader.warnings = []
        try:
            value = loader.get_single_data()
        finally:
            loader.dispose()
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else "nested too deep"
        text = f"error converting YAML to JSON: yaml: {first}"
        lead = f"the object provided is unrecognized (must be of type {kind}): " if kind else ""
        raise bad_request(lead + text) from None
    return value, loader.warnings


def _check_events(body: bytes, most: int) -> None:
    """Refuse what must not become values: deep nesting (building recurses, in C where nothing stops it) and aliases."""
    depth = 0
    for event in yaml.parse(body, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):  # a few bytes of them can mean gigabytes
            where = f"line {event.start_mark.line + 1}: " if event.start_mark else ""
            raise bad_request(f"{where}YAML aliases (*{event.anchor}) are not accepted in a request")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > most:
                raise bad_request(f"the body is nested deeper than {most} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def dump(value: Any) -> bytes:
    text: str = yaml.dump(value, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=True)
    return text.encode()
