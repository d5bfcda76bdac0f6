"""The live service: keep the jobs of all views running on the Spark server. Run as ``python -m lockstep.service``.

The queries run in the server. If this process is killed, they continue, and the next process finds each one in its fixed
session. If the server is killed, this process ends too, and its supervisor starts it again when the server is back.
"""

from lockstep.service.job import members_of, start
from lockstep.service.loop import run

__all__ = ["members_of", "run", "start"]
