"""Readers outside the platform: consumer groups, share groups and direct messages.

Each is an example to copy, and a demonstration to run: ``lockstep readers groups``, ``shares`` and ``direct``.
"""
