"""Housekeeping: archive the ledgers, compact small files, remove what nobody can need any more."""

from lockstep.maintain.run import MaintenanceResult, maintain

__all__ = ["MaintenanceResult", "maintain"]
