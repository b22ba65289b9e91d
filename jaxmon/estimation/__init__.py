"""From counts to scores, intervals, levels."""
