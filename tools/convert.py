"""Any checkpoint that models/loading.py reads -> a folder with a sharded Orbax checkpoint that loads on any mesh.

    python -m tools.convert --source=weights/model.gguf --out=weights/model-bf16 --dtype=bfloat16 --mesh=1x4

Parameters stream from the source onto the mesh and from there to disk; no file is larger than Orbax makes it. The
folder works wherever a checkpoint does (--config.model=), and starts faster: nothing is dequantised or transposed.
"""

from __future__ import annotations

from pathlib import Path

from absl import flags

from experiments import cli


def convert(source: Path, out: Path, dtype: str, mesh: str) -> None:
    """Raises: ValueError (CheckpointError): one line on what is wrong with source, mesh or folder."""
    from models import mesh as meshes
    from models import orbax_folder
    from models.assign import by_path
    from models.loading import load, open_checkpoint

    model = load(source, dtype, meshes.make(mesh))
    made_from = {"source": model.name, "fingerprint": model.fingerprint, "dtype": dtype}
    orbax_folder.write(out, by_path(model.params), open_checkpoint(source), made_from)


def main(argv: list[str]) -> None:
    f = flags.FLAGS
    if argv[1:] or not f.source or not f.out:
        raise ValueError("usage: python -m tools.convert --source=CHECKPOINT --out=FOLDER [--dtype=...] [--mesh=...]")
    convert(Path(f.source), Path(f.out), f.dtype, f.mesh)
    print(f"{f.out}: {sum(p.stat().st_size for p in Path(f.out).rglob('*') if p.is_file()) / 2**30:.3f} GiB")


if __name__ == "__main__":
    flags.DEFINE_string("source", None, "A Hugging Face folder, a .gguf file or a converted folder.")
    flags.DEFINE_string("out", None, "The folder to make.")
    flags.DEFINE_enum("dtype", "bfloat16", ["float32", "bfloat16"], "Type of the stored parameters.")
    flags.DEFINE_string("mesh", "1x1", "Devices that hold the parameters on the way, DATAxMODEL.")
    cli.start(main)
