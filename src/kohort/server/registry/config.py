"""Rules of ConfigMap and Secret."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kohort.api.errors import FieldError, forbidden, invalid, required, too_long
from kohort.api.rules import same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kohort.api.kind import Context, Object

_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_MOST: Final = 1 << 20
_KEYS_OF_TYPE: Final = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_KEY_TEXT: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def config_map(obj: Object, _: Context) -> list[FieldError]:
    return list(_data(obj))


def config_map_update(new: Object, old: Object, _: Context) -> list[FieldError]:
    return [*_frozen(new, old, ("data", "binaryData")), *_data(new)]


def secret(obj: Object, _: Context) -> list[FieldError]:
    return [*_data(obj), *_of_type(obj)]


def secret_update(new: Object, old: Object, _: Context) -> list[FieldError]:
    found = list(_frozen(new, old, ("data",)))
    if new.get("type") != old.get("type"):
        found.append(invalid("type", new.get("type"), "field is immutable"))
    return [*found, *_data(new), *_of_type(new)]


def _data(obj: Object) -> Iterator[FieldError]:
    size = 0
    plain, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    is_secret = obj.get("kind") == "Secret"
    for member, block in (("data", plain), ("binaryData", binary)):
        for key, value in block.items():
            if not _KEY.fullmatch(key) or key in {".", ".."} or key.startswith(".."):
                yield invalid(f"{member}[{key}]", key, _KEY_TEXT)
            if member == "binaryData" and key in plain:
                yield invalid(member, key, "duplicate of key present in data")
            size += len(str(value)) * (3 if is_secret or member == "binaryData" else 4) // 4
    if size > _MOST:
        yield too_long("" if not is_secret else "data", _MOST)


def _of_type(obj: Object) -> Iterator[FieldError]:
    data = obj.get("data") or {}
    annotations = obj["metadata"].get("annotations") or {}
    if obj.get("type") == "kubernetes.io/service-account-token":
        name = "kubernetes.io/service-account.name"
        if not annotations.get(name):
            yield required(f"metadata.annotations[{name}]")
    if obj.get("type") == "kubernetes.io/basic-auth" and not ("username" in data or "password" in data):
        yield required("data[username]")
        yield required("data[password]")
    for key in _KEYS_OF_TYPE.get(str(obj.get("type")), ()):
        if key not in data:
            yield required(f"data[{key}]")


def _frozen(new: Object, old: Object, members: tuple[str, ...]) -> Iterator[FieldError]:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", "field is immutable when `immutable` is set")
    for member in members:
        if not same(new.get(member) or {}, old.get(member) or {}):
            yield forbidden(member, "field is immutable when `immutable` is set")
