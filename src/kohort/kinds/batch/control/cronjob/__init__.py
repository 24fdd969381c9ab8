"""The CronJob controller: Jobs at given times, each of which may be a gang (spec job 3.10)."""
