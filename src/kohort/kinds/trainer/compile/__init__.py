"""How a TrainJob and its runtime become a JobSet with groups. One idea per module; `compile/trainjob.py` joins them."""
