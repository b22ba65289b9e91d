"""Who does the work of a run: this process (local.py), or workers of a Ray cluster (ray_cluster.py). See README.md."""
