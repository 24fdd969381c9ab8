"""HorizontalPodAutoscalers where nobody measures: their limits hold, and they say why nothing else is done."""
