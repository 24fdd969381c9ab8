"""Settings of PodCliqueSets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from kohort.gang.settings import KindSettings, about


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCliqueSetSettings(KindSettings):
    kind: ClassVar[str] = "podcliqueset"

    init_container_image: str = field(
        default="grove-initc:latest",
        metadata=about(
            "The image of the init container in which pods of a later clique wait for the cliques before it "
            "(`startsAfter`)."
        ),
    )


SETTINGS: Final = PodCliqueSetSettings
