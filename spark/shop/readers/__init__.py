"""How readers outside the platform take part: the log way (consumer groups), the queue way (share groups), and direct messages.

Each is an example to copy and a demonstration to run: ``lockstep readers groups``, ``shares`` and ``direct``.
"""
