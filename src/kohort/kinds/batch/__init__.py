"""Job and CronJob."""
