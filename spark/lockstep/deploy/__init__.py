"""Bring what runs to what the project's files say: ``lockstep plan`` shows the difference, ``lockstep apply`` makes it so."""
