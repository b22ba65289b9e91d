"""From chains and labels to THE WAIST, the counts table."""
