"""What a queue of jobs would do on a described cluster: the live scheduler's core, driven by a trace in virtual time.

Nothing here decides. Jobs arrive as PodGroups and pods, the core says where they go, their pods run for as long as the
trace says, and nodes go and come.
"""
