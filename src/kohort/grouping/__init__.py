"""Gangs for operators that know nothing of Kohort: the group of a pod, from what the pod and its owners say.

Pure. One module for each source, one registration each (`registry.py`). docs/companion.md says what is read.
"""
