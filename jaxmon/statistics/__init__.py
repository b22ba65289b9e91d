"""Exact binomials and ratios."""
