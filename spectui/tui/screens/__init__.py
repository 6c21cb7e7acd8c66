"""Whole screens and dialogues."""
