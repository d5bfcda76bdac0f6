"""Send rows of quarantine to their topic again, corrected, and each of them once."""
