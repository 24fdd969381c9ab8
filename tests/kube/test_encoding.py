"""Requests are written as Kubernetes itself writes JSON: members that are kept as bytes compare equal later."""

from __future__ import annotations

import json

import msgspec

from kohort.kube.codec import encode


def test_characters_that_kubernetes_escapes() -> None:
    value = {"command": ["a <b >c && d", "\u2028\u2029 é"], "n": [1, None, True]}
    text = encode(value)
    assert (
        text
        == rb'{"command":["a \u003cb \u003ec \u0026\u0026 d","\u2028\u2029 ' + "é".encode() + b'"],"n":[1,null,true]}'
    )
    assert json.loads(text) == value


def test_bytes_are_sent_as_they_are() -> None:
    assert encode(b'{"a":"<"}') == b'{"a":"<"}'
    assert encode(msgspec.Raw(b"<")) == b"<"
