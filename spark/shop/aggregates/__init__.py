"""The shop's aggregates: commands, the events that they become, and what events add up to."""
