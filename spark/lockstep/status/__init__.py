"""*Is it all right?* Health, lag, freshness, gates, runs and verdicts on one screen."""
