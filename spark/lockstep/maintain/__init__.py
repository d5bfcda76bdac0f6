"""Housekeeping: archive the ledgers, compact small files, remove files that no reader can need."""

from lockstep.maintain.run import MaintenanceResult, maintain

__all__ = ["MaintenanceResult", "maintain"]
