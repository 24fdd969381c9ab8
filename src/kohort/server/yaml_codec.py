"""YAML in bodies: as a server reads it, and as it writes it. Apart, since most clients never send any."""

from __future__ import annotations

import json
import math
from typing import Any, Final

import yaml

from kohort.server.status import NestingError, bad_request

_LONGEST_NUMBER: Final = 300  # letters; longer ones are text


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


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int | float | str:
    """As Go's reader: base 60 is text; what 64 bits cannot hold is a float, or text."""
    text = str(loader.construct_scalar(node))
    if ":" in text or len(text) > _LONGEST_NUMBER:
        return text
    value: int = loader.construct_yaml_int(node)
    return value if -(1 << 63) <= value < 1 << 64 else float(value)


def _floating(loader: _Loader, node: yaml.ScalarNode) -> float | str:
    text = str(loader.construct_scalar(node))
    if ":" in text or len(text) > _LONGEST_NUMBER:
        return text
    value: float = loader.construct_yaml_float(node)
    if not math.isfinite(value):
        raise ValueError(f"{text}: JSON has no such number")
    return value


def _binary(loader: _Loader, node: yaml.ScalarNode) -> str:
    found: bytes = loader.construct_yaml_binary(node)
    return found.decode()


def _unknown(_loader: _Loader, node: yaml.Node) -> None:
    raise ValueError(f"line {node.start_mark.line + 1}: tag {node.tag} is not accepted")


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _floating)
_Loader.add_constructor("tag:yaml.org,2002:binary", _binary)
for _tag in ("set", "omap", "pairs"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _unknown)
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
                raise NestingError(most)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def dump(value: Any) -> bytes:
    text: str = yaml.dump(value, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=True)
    return text.encode()
