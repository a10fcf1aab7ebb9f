"""Variants held against each other: paired differences, where signals disagree, and what would settle it."""
