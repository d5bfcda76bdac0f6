"""The shop's streams, one module each."""
