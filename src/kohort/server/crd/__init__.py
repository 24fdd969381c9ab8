"""Custom resources: definitions are checked, named, served; their objects are pruned, defaulted, validated.

Everything but `controller` is pure. What a CRD can say and this server does not do: conversion webhooks (versions must
have the same schema), and CEL rules beyond the subset of `cel`, of which the CRD's author is warned.
"""

from kohort.server.crd.controller import DefinitionController

__all__ = ["DefinitionController"]
