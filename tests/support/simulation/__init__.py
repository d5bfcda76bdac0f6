"""The whole platform in one thread, without Spark, Kafka and disks: the decisions are the real code, the world is simulated.

``streams`` has the contracts and views, ``kafka`` and ``producers`` the log and who writes to it, ``lake`` the tables, ``engine``
what Spark computes, ``seams`` puts them below the real code, ``live`` is a streaming query, ``world`` has the clock, the dice and
the faults, ``oracle`` says what must come out, ``invariants`` compares, and ``run`` plays a seed.
"""
