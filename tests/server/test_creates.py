"""What the path of a create means is remembered: nobody can tell by the answers."""

from __future__ import annotations

from typing import Any

from tests.server.talk import Talk

from kohort.kube.codec import encode
from kohort.kube.wire import Request, User

PATH = "/api/v1/namespaces/d/configmaps"


def _body(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"a": "b"}}


def _told(talk: Talk) -> list[Any]:
    """Creates of several kinds, good and bad, each twice."""
    asked = [
        (PATH, _body("a")),
        (PATH, {"metadata": {"name": "A_B"}}),
        ("/api/v1/configmaps", _body("x")),
        ("/api/v1/namespaces/d/nothings", _body("x")),
        ("/api/v1/namespaces/none/configmaps", _body("x")),
        ("/api/v1/namespaces/d/configmaps/a", _body("a")),
        ("/api/v1/namespaces", {"metadata": {"name": "e"}}),
    ]
    answers = [talk.request("POST", path, body) for path, body in asked for _ in range(2)]
    return [(one.code, one.headers, _without_own(one.json())) for one in answers]


def _without_own(found: Any) -> Any:
    for name in ("uid", "creationTimestamp", "managedFields", "resourceVersion"):
        found.get("metadata", {}).pop(name, None)
    return found


def test_the_second_create_is_answered_as_without_memory(talk: Talk) -> None:
    other = Talk()
    other.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
    other.api._like_before = lambda *_: None  # type: ignore[method-assign]
    try:
        assert _told(talk) == _told(other)
    finally:
        other.close()


def test_what_is_no_longer_served_is_not_found(talk: Talk) -> None:
    talk.create(PATH, _body("a"))
    talk.api.resources.remove("", "v1", "configmaps")
    assert talk.request("POST", PATH, _body("b")).code == 404


def test_each_user_is_asked_for(talk: Talk) -> None:
    class _OnlyOne:
        def allows(self, user: User, _attributes: object) -> tuple[bool, str]:
            return user.name == "one", "because"

    talk.api.authorizer = _OnlyOne()

    def code(name: str) -> int:
        request = Request("POST", PATH, {}, {}, encode(_body(name)), User(name))
        return talk.loop.run_until_complete(talk.api.handle(request)).status

    assert [code(name) for name in ("one", "two", "one")] == [201, 403, 409]
