"""Look at the platform again and again: publish metrics, and tell people of problems. Run as ``python -m lockstep.monitor``."""
