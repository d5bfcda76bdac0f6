"""Event sourcing: commands become events, each once, by one processor for each partition. State is what events add up to."""
