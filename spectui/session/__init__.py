"""Orchestration over Protocols: launch, sample, drive the workload, restart to compare, record."""
