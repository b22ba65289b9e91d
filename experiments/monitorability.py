"""From prompts to M0 and M1: sample both arms, judge, count, estimate, report.

    python -m experiments.monitorability --config=experiments/configs/ledger.py --workdir=runs/ledger

Running the same command again resumes: what is on disk is not drawn again, and the result is the same bit for bit.
On several hosts the same command runs on each, with a mesh over all devices (experiments/hosts.py):

    ... --config.mesh=2x4 --coordinator=HOST0:1234 --processes=2 --process=0     # and --process=1 on the other

On many accelerators, each group of them a worker of a Ray cluster (experiments/runners/README.md):

    ... --runner=ray --workers=4                  # a cluster on this machine
    ... --runner=ray --ray_address=HEAD:6379      # one that is there
"""

from __future__ import annotations

from absl import flags

from experiments import cli


def main(argv: list[str]) -> None:
    config, workdir = cli.run_flags(argv)
    f = flags.FLAGS
    if f.runner == "local":
        if any(v is not None for v in (f.ray_address, f.workers, f.worker_hosts)):
            raise ValueError("--ray_address, --workers and --worker_hosts go with --runner=ray")
        from experiments import hosts

        hosts.start(f.coordinator, f.processes, f.process)
        from experiments.study import run

        run(config, workdir, cli.terms())
        return
    if any(v is not None for v in (f.coordinator, f.processes, f.process)):
        raise ValueError("--coordinator, --processes and --process go with --runner=local")
    from experiments.runners import ray_cluster
    from experiments.study import run

    with ray_cluster.cluster(f.ray_address, f.workers, f.worker_hosts or 1) as started:
        run(config, workdir, cli.terms(), started)


if __name__ == "__main__":
    cli.define_run_flags()
    flags.DEFINE_string("coordinator", None, "HOST:PORT of process 0, or auto; default $JAX_COORDINATOR_ADDRESS.")
    flags.DEFINE_integer("processes", None, "Number of processes; default $JAX_NUM_PROCESSES, else one.", 1)
    flags.DEFINE_integer("process", None, "Which of them this is; default $JAX_PROCESS_ID.", 0)
    flags.DEFINE_enum("runner", "local", ["local", "ray"], "Who samples: this process, or workers of a Ray cluster.")
    flags.DEFINE_string("ray_address", None, "HOST:PORT of the cluster's head, or auto; default: a cluster made here.")
    flags.DEFINE_integer("workers", None, "Workers of the cluster; default: as many as its accelerators allow.", 1)
    flags.DEFINE_integer("worker_hosts", None, "Processes of a worker, on as many hosts; default: one.", 1)
    cli.start(main)
