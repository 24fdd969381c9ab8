"""Name formats (spec workload-api 0.2): what passes, and how many things are wrong with what does not."""

from __future__ import annotations

import pytest

from kohort.api import formats
from kohort.api.formats import Format, problems

CASES = [
    (formats.label, "a", 0),
    (formats.label, "007", 0),
    (formats.label, "r" * 63, 0),
    (formats.label, "r" * 64, 1),
    (formats.label, "", 1),
    (formats.label, "a.b", 1),
    (formats.label, "-a", 1),
    (formats.label, "größe", 1),
    (formats.label, "R." + "r" * 62, 2),
    (formats.label, "a\n", 1),
    (formats.label_1035, "a-1", 0),
    (formats.label_1035, "1-a", 1),
    (formats.subdomain, "a.b-c.d", 0),
    (formats.subdomain, "x" * 200, 0),
    (formats.subdomain, "x" * 254, 1),
    (formats.subdomain, "a..b", 1),
    (formats.subdomain, "A" * 254, 2),
    (formats.label_key, "example.org/Rack_2.x", 0),
    (formats.label_key, "rack", 0),
    (formats.label_key, "example.org/" + "k" * 63, 0),
    (formats.label_key, "example.org/" + "k" * 64, 1),
    (formats.label_key, "Example.org/rack", 1),
    (formats.label_key, "/rack", 1),
    (formats.label_key, "example.org/", 2),
    (formats.label_key, "/", 3),
    (formats.label_key, "a/b/c", 1),
    (formats.label_key, "UP.example/-x-", 2),
    (formats.label_value, "", 0),
    (formats.label_value, "My_value.1", 0),
    (formats.label_value, "no spaces", 1),
    (formats.path_segment, "Any thing: at all", 0),
    (formats.path_segment, "..", 1),
    (formats.path_segment, "a/b%c", 2),
    (formats.domain_prefixed_path, "acme.io/foo", 0),
    (formats.domain_prefixed_path, "foo", 1),
    (formats.condition_reason, "A,b:c_9", 0),
    (formats.condition_reason, "Bad:", 1),
    (formats.condition_reason, "1st", 1),
    (formats.quantity, "500m", 0),
    (formats.quantity, "4 Gi", 1),
]


@pytest.mark.parametrize(("form", "text", "count"), CASES)
def test_problems(form: Format, text: str, count: int) -> None:
    found = problems(form, text)
    assert len(found) == count
    assert form(text) == (found[0] if found else None)
