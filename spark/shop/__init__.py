"""The shop: the project that this repository comes with, to show the platform at work."""
