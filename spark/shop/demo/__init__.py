"""``lockstep demo``: the whole platform, from nothing running to the verdict."""
