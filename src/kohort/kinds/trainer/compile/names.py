"""Names of groups (spec trainjob 3.6).

They carry a hash over the TrainJob's uid, so that a job of the same name never meets the groups of its predecessor, and
never change while it lives, because the JobSet's Pod templates name them and cannot change.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha1
from typing import Final

_LONGEST: Final = 63
_TEMPLATE_PART: Final = 24
_DIGITS: Final = 10


@dataclass(frozen=True, slots=True)
class Namer:
    """Names the groups of one TrainJob."""

    namespace: str
    job: str
    uid: str

    def digest(self, template: str) -> str:
        lines = ("trainer.kubeflow.org/TrainJob", self.namespace, self.job, self.uid, template)
        return sha1("\n".join(lines).encode(), usedforsecurity=False).hexdigest()[:_DIGITS]

    def group(self, template: str) -> str:
        """The object name of the group of a template; one named like the job does not repeat it."""
        tail = self.digest(template)
        if template != self.job:
            tail = f"{template[:_TEMPLATE_PART].rstrip('-')}-{tail}"
        return f"{self.job[: _LONGEST - len(tail) - 1].rstrip('-')}-{tail}"

    def template(self, name: str) -> str:
        """A template name that fits into a label: joined names may be longer."""
        return name if len(name) <= _LONGEST else f"{name[: _LONGEST - _DIGITS - 1]}-{self.digest(name)}"

    def root(self, taken: set[str]) -> str:
        """The name of the level over the whole job. Names are unique in the tree."""
        return self.template(f"{self.job}-root") if self.job in taken else self.job
