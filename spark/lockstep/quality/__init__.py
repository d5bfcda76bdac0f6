"""Gates on silver and gold: reviewable suites, run on what is new, with outcomes that are kept and read."""
