"""Erasure: the right to be forgotten, in all layers, with a receipt that proves it."""
