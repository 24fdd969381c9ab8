"""Custom resources: definitions are checked, named, served; their objects are pruned, defaulted, validated.

Everything but `controller` is pure. What a CRD can say and this server does not do: a change of the stored version
(objects stay as they were written), and CEL rules beyond the subset of `cel`, of which the CRD's author is warned.
"""

from kohort.server.crd.controller import DefinitionController

__all__ = ["DefinitionController"]
