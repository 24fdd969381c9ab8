"""The paths of printer columns."""

import pytest

from kohort.server.jsonpath import JsonPathError, find, first

OBJ = {
    "a": {"b": 1, "x.y": 2, "l": [{"t": "P", "s": 1}, {"t": "Q", "s": 2}]},
    "m": {"one": 1, "two": 2},
}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (".a.b", [1]),
        ("{.a.b}", [1]),
        ("a.b", [1]),
        (".a.l[0].s", [1]),
        (".a.l[-1].s", [2]),
        (".a.l[-1:].t", ["Q"]),
        (".a.l[:1].t", ["P"]),
        (".a.l[*].s", [1, 2]),
        ('.a.l[?(@.t=="Q")].s', [2]),
        (".a['x.y']", [2]),
        (r".a.x\.y", [2]),
        (".m.*", [1, 2]),
        (".none.deeper", []),
        (".a.l[9]", []),
    ],
)
def test_paths(path: str, wanted: list[object]) -> None:
    assert find(OBJ, path) == wanted
    assert first(OBJ, path) == (wanted[0] if wanted else None)


@pytest.mark.parametrize("path", [".a[", "..a", ".a[?(x)]"])
def test_what_is_not_understood(path: str) -> None:
    with pytest.raises(JsonPathError):
        find(OBJ, path)
