"""Writes src/kohort/server/data/protobuf.json.gz: the field numbers of Kubernetes' types in its binary format.

    python hack/protobuf.py ~/go/pkg/mod/k8s.io 0.35.4 0.36.3 0.37.1

Numbers, names and whether a field may be absent are facts of the wire format; they are read from the struct tags of
the published Go modules. Later versions are read last and win; a number never changes its meaning.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parents[1] / "src" / "kohort" / "server" / "data" / "protobuf.json.gz"
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^type (\w+) ((?:\[\]|map\[)[^\n{]*)$", re.MULTILINE)
_SCALAR = re.compile(r"^type (\w+) (string|int32|int64|bool|int)\b", re.MULTILINE)
_FIELD = re.compile(r"^\t(?:(\w+)\s+)?([\w.*\[\]]+)\s+`([^`]*)`", re.MULTILINE)
_IMPORT = re.compile(r'^\t(?:(\w+) )?"([^"]+)"', re.MULTILINE)
_SPECIAL = {
    "k8s.io/apimachinery/pkg/api/resource.Quantity": "quantity",
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": "intorstring",
    "meta/v1.Time": "time",
    "meta/v1.MicroTime": "microtime",
    "meta/v1.Duration": "duration",
    "meta/v1.FieldsV1": "raw",
    "k8s.io/apimachinery/pkg/runtime.RawExtension": "raw",
    "k8s.io/apimachinery/pkg/types.UID": "string",
    "k8s.io/apimachinery/pkg/types.NodeName": "string",
}
# Members of a JSON schema that are one of two things in JSON; the reader puts them together.
_SCHEMA = "apiextensions/v1.JSONSchemaProps"
_SPECIAL |= {"apiextensions/v1.JSON": "json"} | {
    f"{_SCHEMA}Or{other}": f"schemaor{other.lower()}" for other in ("Array", "Bool", "StringArray")
}
_PLAIN = {"string", "bool", "int32", "int64", "int", "uint32", "uint64", "float64", "byte"}


def package(folder: Path, root: Path) -> str:
    """core/v1, apps/v1, meta/v1."""
    return "/".join(folder.relative_to(root).parts)


def read(folder: Path, name: str, types: dict[str, Any], named: dict[str, str]) -> None:
    for path in sorted(folder.glob("*.go")):
        if path.name.startswith(("generated", "zz_")) or path.name.endswith("_test.go"):
            continue
        text = path.read_text()
        imports = {}
        for alias, target in _IMPORT.findall(text):
            imports[alias or target.rpartition("/")[2]] = _package_of(target)
        for found, body in _NAMED.findall(text):
            named[f"{name}.{found}"] = _qualified(body.split("//")[0].strip(), name, imports)
        for found, scalar in _SCALAR.findall(text):
            named[f"{name}.{found}"] = scalar
        for found, body in _STRUCT.findall(text):
            fields = list(_fields(body, name, imports))
            if fields:
                known = {one[0]: one for one in types.get(f"{name}.{found}", [])}
                known.update({one[0]: one for one in fields})
                types[f"{name}.{found}"] = [known[number] for number in sorted(known)]


def _package_of(target: str) -> str:
    if target.startswith("k8s.io/api/"):
        return target.removeprefix("k8s.io/api/")
    if target == "k8s.io/apimachinery/pkg/apis/meta/v1":
        return "meta/v1"
    return target


def _qualified(kind: str, name: str, imports: dict[str, str]) -> str:
    """A Go type with the packages of its parts written out."""

    def one(match: re.Match[str]) -> str:
        word = match.group(0)
        if word in _PLAIN or word == "map":
            return word
        if "." in word:
            alias, _, rest = word.partition(".")
            return f"{imports.get(alias, alias)}.{rest}"
        return f"{name}.{word}"

    return re.sub(r"[A-Za-z_][\w.]*", one, kind)


def _fields(body: str, name: str, imports: dict[str, str]) -> Any:
    for _, kind, tags in _FIELD.findall(body):
        binary = re.search(r'protobuf:"\w+,(\d+),(\w+)', tags)
        text = re.search(r'json:"([^"]*)"', tags)
        if binary is None or text is None:
            continue
        json_name, _, rest = text.group(1).partition(",")
        # A named list that is repeated on the wire is a list like any other; else it is a message of its own.
        repeated = binary.group(2) == "rep" and not kind.startswith(("[", "map", "*"))
        yield [
            int(binary.group(1)),
            "" if "inline" in rest or not json_name else json_name,
            ("repeated " if repeated else "") + _qualified(kind, name, imports),
            "omitempty" not in rest,
        ]


def settle(kind: str, named: dict[str, str], types: dict[str, Any]) -> list[Any]:
    """[container, element, keeps]: container is "", list, map or wrapped; keeps: zero is a value (a pointer in Go)."""
    keeps = kind.startswith("*")
    kind = kind.removeprefix("*")
    if kind.startswith("repeated "):
        inner = kind.removeprefix("repeated ")
        kind = named.get(inner, inner)
    if kind in named and named[kind].startswith("[]"):
        return ["wrapped", settle(named[kind][2:], named, types)[1], keeps]
    while kind in named and named[kind] not in _PLAIN:
        kind = named[kind]
    if kind == "[]byte":
        return ["", "bytes", keeps]
    if kind.startswith("[]"):
        return ["list", settle(kind[2:], named, types)[1], keeps]
    if kind.startswith("map["):
        inner = settle(kind[kind.index("]") + 1 :], named, types)
        return ["map", f"wrapped {inner[1]}" if inner[0] == "wrapped" else inner[1], keeps]
    return ["", _SPECIAL.get(kind) or named.get(kind, kind), keeps]


def _settled(number: int, text: str, kind: list[Any], told: bool) -> list[Any]:
    """`told`: JSON has the field even if it is zero, which matters for what people would miss (`served: false`)."""
    container, element, keeps = kind
    return [number, text, container, element, keeps or (told and not container and element in _PLAIN)]


def main(root: Path, versions: list[str]) -> None:
    types: dict[str, Any] = {}
    named: dict[str, str] = {}
    for version in versions:
        api = root / f"api@v{version}"
        for folder in sorted(path.parent for path in api.glob("*/v*/types.go")):
            read(folder, package(folder, api), types, named)
        meta = root / f"apimachinery@v{version}" / "pkg" / "apis" / "meta" / "v1"
        read(meta, "meta/v1", types, named)
        definitions = root / f"apiextensions-apiserver@v{version}" / "pkg" / "apis" / "apiextensions" / "v1"
        read(definitions, "apiextensions/v1", types, named)
    document = {
        name: [_settled(number, text, settle(kind, named, types), told) for number, text, kind, told in fields]
        for name, fields in sorted(types.items())
    }
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_bytes(gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0))
    unknown = {
        field[3]
        for fields in document.values()
        for field in fields
        if "." in field[3].removeprefix("wrapped ") and field[3].removeprefix("wrapped ") not in document
    }
    sys.stdout.write(f"{len(document)} types, {OUT.stat().st_size} bytes; without fields: {sorted(unknown)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
