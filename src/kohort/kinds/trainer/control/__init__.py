"""TrainJob: a runtime's template becomes a JobSet, its groups come first, and the JobSet's fate is the job's."""
