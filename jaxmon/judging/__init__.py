"""A chain's labels, and how good labels are."""
