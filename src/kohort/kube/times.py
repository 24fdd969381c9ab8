"""Moments as the API writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


def seconds(moment: datetime) -> str:
    """metav1.Time"""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def micros(moment: datetime) -> str:
    """metav1.MicroTime"""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
