"""What an API server works out about a new pod: its class of service, and when images are pulled."""

from typing import Any

import pytest

from kohort.api.core.pod_defaults import tag_of
from kohort.api.core.qos import qos_class

BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("containers", "wanted"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {}, "limits": {}}], "BestEffort"),
        ([{"requests": {"example.org/gpu": "1"}, "limits": {"example.org/gpu": "1"}}], "BestEffort"),
        ([{"requests": {"cpu": "0"}}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"requests": BOTH, "limits": BOTH}], "Guaranteed"),
        ([{"requests": BOTH, "limits": {"cpu": "1000m", "memory": "1024Mi"}}], "Guaranteed"),
        ([{"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}], "Burstable"),
        ([{"requests": BOTH, "limits": BOTH}, {}], "Burstable"),
        ([{"requests": {"cpu": "1", "memory": "1"}, "limits": BOTH}], "Burstable"),
        ([{"requests": {"cpu": "x"}}], "BestEffort"),  # refused later
    ],
)
def test_class_of_service(containers: list[Any], wanted: str) -> None:
    assert qos_class({"containers": [{"resources": one} for one in containers]}) == wanted


def test_resources_of_the_whole_pod_stand_for_its_containers() -> None:
    assert qos_class({"resources": {"requests": BOTH, "limits": BOTH}, "containers": [{}]}) == "Guaranteed"
    assert (
        qos_class({"containers": [{"resources": {"requests": BOTH, "limits": BOTH}}], "initContainers": [{}]})
        == "Burstable"
    )


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("x", "latest"),
        ("x:1", "1"),
        ("x:latest", "latest"),
        ("example.org:5000/a/b", "latest"),
        ("localhost/a_b__c--d.e", "latest"),
        ("x@sha256:" + "0" * 64, ""),
        ("x:latest@sha256:" + "0" * 64, "latest"),
        ("Host/x", "latest"),
        ("X", ""),
        ("", ""),
        ("x:1:2", ""),
        ("x y", ""),
        ("0" * 64, ""),
        ("a" * 256, ""),
        ("a" * 3_000_000 + "!", ""),
    ],
    ids=lambda text: text[:30],
)
def test_tags_of_images(image: str, tag: str) -> None:
    assert tag_of(image) == tag
