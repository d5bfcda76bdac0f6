"""A package, so that what has this scope, the servers of erasures, ends with the last test of this folder."""
