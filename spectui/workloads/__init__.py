"""Prompt sets by task, as data."""
