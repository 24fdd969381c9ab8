"""From bytes to objects of the reader's choice: dictionaries, raw bytes, or msgspec structs with the fields one reads.

A struct needs `metadata: Meta` (or a subclass of Meta); what it does not name is skipped while parsing, which is where
the speed of hot paths comes from.
"""

from __future__ import annotations

import gc
from contextlib import nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, cast

import msgspec
import msgspec.inspect

from kohort import tuning
from kohort.kube import jsonpieces
from kohort.kube.errors import ApiError, KubeError
from kohort.kube.reading import dictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Iterable

    from kohort.kube.reading import Reading

T = TypeVar("T")
U = TypeVar("U")
Object = dict[str, Any]

INITIAL_END: Final = "k8s.io/initial-events-end"
_CHANGES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})
_LARGE: Final = 1 << 15  # bytes
_LONG: Final = 1 << 18  # bytes: what takes ten milliseconds to read, and a hundred in memory that was given back
_new = tuple.__new__  # a named tuple without the detour through its keyword arguments: half of a hot path's time


class UnreadableError(KubeError):
    """The server sent something that is not what the reader's type says, or not JSON at all."""


class Meta(msgspec.Struct, rename="camel"):
    """The part of metadata that every object has and every cache needs."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Key(NamedTuple):
    """An object's place. Cluster-scoped objects have no namespace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Identity(NamedTuple):
    """Which object, which incarnation of it, which state of that."""

    key: Key
    uid: str
    version: str


class Event(NamedTuple, Generic[T]):
    """One line of a watch. A bookmark has a version and no object; one that the type cannot hold has a key."""

    type: str
    object: T | None
    version: str = ""
    initial_end: bool = False
    key: Key | None = None


class Page(NamedTuple, Generic[T]):
    """A list, or a part of one."""

    items: list[T]
    version: str
    rest: str = ""
    remaining: int | None = None


class _ListMeta(
    msgspec.Struct, rename={"rest": "continue", "version": "resourceVersion", "remaining": "remainingItemCount"}
):
    version: str = ""
    rest: str = ""
    remaining: int | None = None


class _List(msgspec.Struct, Generic[T]):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[T] | None = None


class _Line(msgspec.Struct, Generic[T]):
    type: str
    object: T


class _Marks(Meta):
    annotations: dict[str, str] | None = None


class _HasMarks(msgspec.Struct):
    metadata: _Marks = msgspec.field(default_factory=_Marks)


_raw_line = msgspec.json.Decoder(_Line[msgspec.Raw])
_bookmark = msgspec.json.Decoder(_HasMarks)
_anything = msgspec.json.Decoder(dict[str, Any])


def decode_large(decode: Callable[[bytes], T], body: bytes) -> T:
    if len(body) < _LARGE:
        return decode(body)
    with tuning.reading_much() if len(body) > _LONG else nullcontext():
        return without_collecting(decode, body)


def without_collecting(work: Callable[[U], T], of: U) -> T:
    """A large tree of JSON is many new objects and no cycle: the collector would look at all of it, several times."""
    if not gc.isenabled():
        return work(of)
    gc.disable()
    try:
        return work(of)
    finally:
        gc.enable()


class Codec(Generic[T]):
    """Reads objects, lists and watch lines of one type."""

    def __init__(
        self, decode: type[T], *, kind: str = "", api_version: str = "", reading: Reading | None = None
    ) -> None:
        """`reading`: of plain objects in lists and watches, only so much. Answers about one object have all of it."""
        self._name = getattr(decode, "__name__", str(decode))
        self._object = msgspec.json.Decoder(decode)
        self._list = msgspec.json.Decoder(_List[decode])  # type: ignore[valid-type]
        self._raw_list = msgspec.json.Decoder(_List[msgspec.Raw])
        self._line = msgspec.json.Decoder(_Line[decode])  # type: ignore[valid-type]
        self._plain = _is_plain(decode)
        self._names = {"apiVersion": api_version, "kind": kind}
        self._parts = _Parts(reading) if reading is not None else None
        self.identify: Callable[[T], Identity] = identifier(decode)

    def one(self, body: bytes) -> T:
        try:
            return decode_large(self._object.decode, body)
        except msgspec.DecodeError as error:
            raise UnreadableError(f"the answer is not {self._name}: {error}") from error

    def page(self, body: bytes, unreadable: Callable[[str], object] | None = None) -> Page[T]:
        """With `unreadable`, items that the type cannot hold are told and left out; without, they are an error."""
        try:
            if self._parts is not None:
                found = self._raw_list.decode(body)
                items = [cast("T", self._parts.of(raw)) for raw in found.items or ()]
            else:
                found = self._list.decode(body)
                items = found.items or []
        except msgspec.DecodeError as error:
            if unreadable is None or not isinstance(error, msgspec.ValidationError):
                raise UnreadableError(f"the answer is not a list of {self._name}: {error}") from error
            found, items = self._item_by_item(body, unreadable)
        if self._plain and self._names["kind"]:
            # Lists leave out what is the same in every item; a reader should not see whence an object came.
            items = [cast("T", {**self._names, **cast("Object", item)}) for item in items]
        return Page(items, found.metadata.version, found.metadata.rest, found.metadata.remaining)

    def events(self, lines: Iterable[bytes], unreadable: Callable[[str], object] | None = None) -> list[Event[T]]:
        return [self.event(line, unreadable) for line in lines]

    def event(self, line: bytes, unreadable: Callable[[str], object] | None = None) -> Event[T]:
        """An ERROR line is raised as the ApiError it holds."""
        if self._parts is not None and (change := self._parts.change(line)) is not None:
            return cast("Event[T]", change)
        try:
            found = decode_large(self._line.decode, line)
        except msgspec.ValidationError as error:
            return self._special(line, error, unreadable)
        except msgspec.DecodeError as error:
            raise UnreadableError(f"a line of the watch is not JSON: {error}") from error
        if found.type in _CHANGES:
            return _new(Event, (found.type, found.object, "", False, None))
        return self._special(line, None, unreadable)

    def event_in_pieces(
        self, line: bytes, unreadable: Callable[[str], object] | None = None
    ) -> Generator[None, None, Event[T]]:
        """As `event`; a long line of plain objects is read with breaks, wherever it yields."""
        if not self._plain or len(line) <= _LONG:
            return self.event(line, unreadable)
        if self._parts is not None and (change := self._parts.change(line)) is not None:
            return cast("Event[T]", change)
        try:
            found = _raw_line.decode(line)
            if found.type not in _CHANGES or bytes(memoryview(found.object)[:1]) != b"{":
                return self.event(line, unreadable)
            parts = jsonpieces.read(found.object)
            while (obj := without_collecting(jsonpieces.advance, parts)) is jsonpieces.MORE:
                yield
        except msgspec.DecodeError:
            return self.event(line, unreadable)
        return _new(Event, (found.type, obj, "", False, None))

    def _special(self, line: bytes, problem: Exception | None, unreadable: Callable[[str], object] | None) -> Event[T]:
        """Bookmarks and errors hold another kind of object than the rest; objects that do not fit land here, too."""
        try:
            found = _raw_line.decode(line)
            body = bytes(found.object)
            if found.type == "ERROR":
                code = msgspec.json.decode(body).get("code")
                raise ApiError.read(code if isinstance(code, int) else 500, body)
            if found.type != "BOOKMARK" and unreadable is None:
                raise UnreadableError(f"the object of a watch event {found.type} is not {self._name}: {problem}")
            meta = _bookmark.decode(body).metadata
        except (msgspec.DecodeError, AttributeError) as error:
            raise UnreadableError(f"a line of the watch is not an event: {error}") from error
        if found.type == "BOOKMARK":
            return Event("BOOKMARK", None, meta.resource_version, (meta.annotations or {}).get(INITIAL_END) == "true")
        key = Key(meta.namespace, meta.name)
        if unreadable is not None:
            unreadable(f"{key} is not {self._name}: {problem}")
        return Event("UNREADABLE", None, meta.resource_version, key=key)

    def _item_by_item(self, body: bytes, unreadable: Callable[[str], object]) -> tuple[Any, list[T]]:
        try:
            found = self._raw_list.decode(body)
        except msgspec.DecodeError as error:
            raise UnreadableError(f"the answer is not a list: {error}") from error
        items: list[T] = []
        for raw in found.items or []:
            try:
                items.append(self._object.decode(raw))
            except msgspec.DecodeError as error:
                meta = _bookmark.decode(raw).metadata
                unreadable(f"{Key(meta.namespace, meta.name)} is not {self._name}: {error}")
        return found, items


class _Parts:
    """Reads no more of an object than a `Reading` names."""

    def __init__(self, reading: Reading) -> None:
        self._object = msgspec.json.Decoder(reading.fields)
        self._line = msgspec.json.Decoder(_Line[reading.fields])  # type: ignore[name-defined]
        self._whole = reading.whole

    def of(self, raw: msgspec.Raw) -> Object:
        try:
            found = self._object.decode(raw)
        except msgspec.ValidationError:
            return _anything.decode(raw)
        return _anything.decode(raw) if self._whole is not None and self._whole(found) else dictionary(found)

    def change(self, line: bytes) -> Event[Object] | None:
        """None: it is no change, not what the fields say, or to be read as a whole."""
        read = self._line.decode
        try:
            found = without_collecting(read, line) if len(line) > _LARGE else read(line)
        except msgspec.DecodeError:
            return None
        if found.type not in _CHANGES or (self._whole is not None and self._whole(found.object)):
            return None
        return _new(Event, (found.type, dictionary(found.object), "", False, None))


_ESCAPED: Final = {character.encode(): f"\\u{ord(character):04x}".encode() for character in "<>&\u2028\u2029"}

_ESCAPED_ASCII: Final = {plain: escaped for plain, escaped in _ESCAPED.items() if plain.isascii()}


def encode(value: object) -> bytes:
    """What goes into a request: bytes as they are, anything else as JSON, written as Kubernetes itself writes it.

    Some members are stored as the bytes that came (`data` of a ControllerRevision). When the server later works on such
    an object, it writes them in its own way, and if that is another one, it refuses: `data` never changes.
    """
    if isinstance(value, bytes | msgspec.Raw):
        return bytes(value)
    text = msgspec.json.encode(value)
    for plain, escaped in (_ESCAPED_ASCII if text.isascii() else _ESCAPED).items():
        if plain in text:  # none of them stands outside of a string
            text = text.replace(plain, escaped)
    return text


def identify(value: object) -> Identity:
    """Of any object, whatever its type."""
    return identifier(type(value))(value)


def identifier(decode: type) -> Callable[[Any], Identity]:
    """How objects of a type are told apart."""
    if _is_plain(decode):
        return _of_dictionary
    return _of_raw if decode in {msgspec.Raw, bytes} else _of_struct


def reads_managers(decode: type) -> bool:
    """Whether objects of a type have their managedFields; structs rarely do."""
    return _reads_managers(cast("Hashable", decode))


@cache
def _reads_managers(decode: Hashable) -> bool:
    try:
        fields = {one.encode_name: one.type for one in msgspec.inspect.type_info(decode).fields}  # type: ignore[attr-defined]
        return any(one.encode_name == "managedFields" for one in fields["metadata"].fields)
    except (AttributeError, KeyError, TypeError, NameError):
        return True


def _is_plain(decode: type) -> bool:
    return decode is dict or getattr(decode, "__origin__", None) is dict


def _of_dictionary(value: Object) -> Identity:
    meta = value.get("metadata") or {}
    key = _new(Key, (meta.get("namespace") or "", meta.get("name") or ""))
    return _new(Identity, (key, meta.get("uid") or "", meta.get("resourceVersion") or ""))


def _of_struct(value: Any) -> Identity:
    meta = value.metadata
    return _new(Identity, (_new(Key, (meta.namespace, meta.name)), meta.uid, meta.resource_version))


def _of_raw(value: bytes) -> Identity:
    return _of_struct(_bookmark.decode(value))
