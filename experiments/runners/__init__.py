"""Who does the work of a run: this process (local.py), or workers of a Ray cluster (ray_runner.py). See README.md."""
