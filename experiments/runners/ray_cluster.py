"""A Ray cluster of a run: joined or made, its workers started with the accelerators they need, and who is let in.

Knows: Ray's nodes and resources, a study's config. Does not know: what workers are told (ray_runner.py).
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from experiments import places, rundir
from experiments.cli import line
from experiments.opening import Study, log
from experiments.runners import identity
from experiments.runners.ray_actor import Actor, Hello
from experiments.runners.ray_runner import Group, Ray, RunnerError
from models import mesh

REACH_S = 10.0
INSTALL = "--runner=ray needs the package ray: pip install -r requirements-ray.txt"


@contextmanager
def cluster(
    address: str | None, workers: int | None, processes: int = 1
) -> Iterator[Callable[[Study, rundir.Terms], Any]]:
    """Joins a cluster, or makes one on this machine; yields what starts a study's workers.

    The driver itself keeps off the accelerators: they are the workers'.

    Args:
      address: HOST:PORT, or "auto" on a node of the cluster; None makes a cluster of this machine.
      workers: how many; None for as many as the accelerators allow, or one per node without any.
      processes: of each worker, on as many hosts, which hold the config's mesh together.

    Raises:
      RunnerError: Ray is not installed, or no cluster answers.
    """
    try:
        import ray
    except ImportError:
        raise RunnerError(INSTALL) from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report the use of its clusters
    own: dict[str, Any] = {}
    if address is None:
        own = {"num_cpus": max(workers or 1, os.cpu_count() or 1), "include_dashboard": False}
    _reach(address)
    try:
        ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **own)
    except Exception as error:  # among them plain ones, of a node that does not come up
        raise RunnerError(f"no Ray cluster at {address or 'this machine'}: {line(error)}") from None
    import jax

    jax.config.update("jax_platforms", "cpu")
    try:
        yield partial(_workers, workers, processes)
    finally:
        ray.shutdown()


def _reach(address: str | None) -> None:
    """Knocks at a cluster's door: Ray itself would say so for a minute, in lines of its own."""
    host, colon, port = (address or "").rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host, int(port)), REACH_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise RunnerError(f"no Ray cluster at {address} (HOST:PORT of its head): {line(error)}") from None


@contextmanager
def _workers(workers: int | None, processes: int, study: Study, terms: rundir.Terms) -> Iterator[Ray]:
    """The runner of a study: its workers are started here and ended on leaving.

    Raises:
      RunnerError: no node has the accelerators that the mesh needs; a judge that wants one itself.
    """
    import ray
    from tqdm import tqdm

    if study.config["judge"] == "model":
        raise RunnerError(
            "config: judge = model needs an accelerator, and with --runner=ray they are the workers'; sample with "
            "judge = lexical, then label with python -m experiments.judge --judge=model"
        )
    if str(study.root).startswith("memory:"):
        raise RunnerError(f"{study.root} is one process's own; workers need a directory or URL that all of them reach")
    data, model = mesh.sizes(study.config["mesh"])
    if data * model % processes:
        raise RunnerError(f"a mesh of {study.config['mesh']} is not shared out evenly by {processes} processes")
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    options, count = needs(data * model // processes, nodes)
    make = ray.remote(Actor).options(**options, scheduling_strategy="SPREAD", max_restarts=0, max_task_retries=0)
    here = dict(study.config), places.absolute(study.root), str(Path.cwd())
    started: list[Group] = []

    def spawn() -> Group:
        started.append(Group([make.remote(*here) for _ in range(processes)]))
        return started[-1]

    say = lambda text: tqdm.write(text, file=sys.stderr)
    try:
        yield Ray(spawn, workers or max(1, count // processes), _door(study, terms), say)
    finally:
        for worker in started:
            worker.kill()


def needs(devices: int, nodes: list[dict[str, float]]) -> tuple[dict[str, Any], int]:
    """What a process with so many devices asks Ray for, and how many such processes the nodes hold.

    Raises:
      RunnerError: none of them holds one.
    """
    kind = next((k for k in ("GPU", "TPU") if any(node.get(k) for node in nodes)), "CPU")
    fits = len(nodes) if kind == "CPU" else sum(int(node.get(kind, 0)) // devices for node in nodes)
    if not fits:
        most = max(int(node.get(kind, 0)) for node in nodes)
        raise RunnerError(f"a worker needs {devices} {kind}s (config.mesh), and no node has more than {most}")
    asked: dict[str, dict[str, Any]] = {
        "GPU": {"num_gpus": devices, "num_cpus": 1},
        "TPU": {"resources": {"TPU": devices}, "num_cpus": 1},
        "CPU": {"num_cpus": 1},
    }
    return asked[kind], fits


def _door(study: Study, terms: rundir.Terms) -> Callable[[Hello], str]:
    """Lets a worker in, or says why not: the first one's model and device are the run's, unless it has begun before."""
    run = identity.Identity(identity.code(), identity.records(study.task.records, study.studied))

    def admit(hello: Hello) -> str:
        nonlocal run
        if why := identity.refusal(run, hello.identity):
            return why
        if not run.model:
            command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
            try:
                log(study, {**hello.entry, "command": command}, terms)
            except rundir.RunError as error:
                return line(error)
            run = hello.identity
        return ""

    return admit
