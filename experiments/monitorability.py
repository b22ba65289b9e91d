"""From prompts to M0 and M1: sample both arms, judge, count, estimate, report.

    python -m experiments.monitorability --config=experiments/configs/ledger.py --workdir=runs/ledger

Running the same command again resumes: what is on disk is not drawn again, and the result is the same bit for bit.
On several hosts the same command runs on each, with a mesh over all devices (experiments/hosts.py):

    ... --config.mesh=2x4 --coordinator=HOST0:1234 --processes=2 --process=0     # and --process=1 on the other
"""

from __future__ import annotations

from absl import flags

from experiments import cli


def main(argv: list[str]) -> None:
    config, workdir = cli.run_flags(argv)
    from experiments import hosts

    hosts.start(flags.FLAGS.coordinator, flags.FLAGS.processes, flags.FLAGS.process)
    from experiments.study import run

    run(config, workdir, cli.terms())


if __name__ == "__main__":
    cli.define_run_flags()
    flags.DEFINE_string("coordinator", None, "HOST:PORT of process 0, or auto; default $JAX_COORDINATOR_ADDRESS.")
    flags.DEFINE_integer("processes", None, "Number of processes; default $JAX_NUM_PROCESSES, else one.", 1)
    flags.DEFINE_integer("process", None, "Which of them this is; default $JAX_PROCESS_ID.", 0)
    cli.start(main)
