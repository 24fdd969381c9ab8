"""The LeaderWorkerSet controller (spec lws 2 and 3, and its gangs: section 4). It makes the pods itself."""
