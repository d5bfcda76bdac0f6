"""``lockstep demo``: start the whole platform, simulate the shop, and prove that live and batch agree."""
