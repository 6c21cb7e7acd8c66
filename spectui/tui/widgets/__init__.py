"""The panels of the dashboard, each drawing one part of a Snapshot."""
