"""TrainJob and its runtimes."""
