"""Names of the objects that stand for a Job, exactly as the Job controllers of 1.36 and 1.37 make them (spec job 2.2).

A name is never used to find an object again (references are), so it only has to be the same each time and legal.
"""

from __future__ import annotations

from typing import Final

from kohort.api import formats

MAX_NAME: Final = 253
MAX_LABEL: Final = 63
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: a hash should not spell words
_SUFFIX: Final = "-pgt-0"


def safe_hash(text: str) -> str:
    """FNV-1a of 32 bits, in decimal, each digit written with a letter of the alphabet."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 % 2**32
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(value))


def workload_name(job: str, uid: str) -> str:
    digest = safe_hash(f"(types.UID){uid}")
    return f"{job[: MAX_NAME - 1 - len(digest)]}-{digest}"


def template_name(job: str) -> str:
    """As upstream makes it. A Job with a dot or of more than 57 characters gets one that no server accepts."""
    return f"{job}{_SUFFIX}"


def legal_template_name(job: str) -> str:
    """The same where it is legal; otherwise a prefix that is, with a hash of the whole name."""
    name = template_name(job)
    if formats.label(name) is None:
        return name
    digest = safe_hash(job)
    prefix = job.replace(".", "-")[: MAX_LABEL - len(_SUFFIX) - 1 - len(digest)].rstrip("-")
    return f"{prefix}-{digest}{_SUFFIX}"


def pod_group_name(workload: str, template: str, salt: str = "") -> str:
    """`salt` tells the groups of several Jobs apart that share one template."""
    digest = safe_hash(workload + template + salt)
    room = MAX_NAME - 2 - len(digest)
    half = room // 2
    if len(workload) + len(template) > room:
        if len(workload) <= half:
            template = template[: room - len(workload)]
        elif len(template) <= half:
            workload = workload[: room - len(template)]
        else:
            workload, template = workload[: room - half], template[:half]
    return f"{workload}-{template}-{digest}"
