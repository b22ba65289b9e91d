"""The builders of olympic, ddxplus and hinted_mcqa: array_record without TensorFlow, checksums, the same records."""

import hashlib
import sys
from pathlib import Path

import pytest

from jaxmon.tasks import ddxplus, hinted_mcqa, olympic
from jaxmon.tasks.ddxplus import raw as ddxplus_raw
from jaxmon.tasks.hinted_mcqa import raw as mmlu_raw
from jaxmon.tasks.olympic import raw as olympic_raw
from tests import raw_files


def builders(name: str):
    """(the builder's module, building); slow to import, and quiet."""
    import importlib

    from jaxmon.tasks import building

    building.tfds.disable_progress_bar()
    return importlib.import_module(f"jaxmon.tasks.{name}.{name}_dataset_builder"), building


def files_of(name: str, folder: Path) -> dict[str, Path]:
    if name == "olympic":
        return {"events": raw_files.olympic(folder)}
    if name == "hinted_mcqa":
        return {"tests": raw_files.mmlu(folder)}
    return {"patients": raw_files.ddxplus(folder), "evidences": folder / ddxplus_raw.EVIDENCES}


def records_of(name: str, paths: dict[str, Path], rows: list[dict[str, str]] | None, module) -> list:
    """Records from the raw files, or (with `rows`) from a builder's examples."""
    if name == "olympic":
        athletes = olympic_raw.read(paths["events"], None) if rows is None else [module.athlete(r) for r in rows]
        return olympic.wording.records(olympic_raw.select(athletes, ("Rowing", "Judo"), 1))
    if name == "hinted_mcqa":
        if rows is None:
            return hinted_mcqa.records(paths["tests"], None)
        return hinted_mcqa.wording.records([module.question(r) for r in rows])
    if rows is None:
        return ddxplus.records(paths["patients"], paths["evidences"], None, per_pathology=2)
    return ddxplus.wording.records([module.patient(r) for r in rows])


NAMES = ("olympic", "ddxplus", "hinted_mcqa")


@pytest.mark.parametrize("name", NAMES)
def test_examples_make_the_records_of_the_raw_file(name, tmp_path):
    module, building = builders(name)
    paths = files_of(name, tmp_path)
    choice = module.Builder.BUILDER_CONFIGS[0].choice
    config = building.FilesConfig(
        name="small",
        sha256=dict.fromkeys(paths),
        choice=choice | {"per_pathology": 2} if choice else {},
    )
    builder = module.Builder(paths=paths, config=config, data_dir=tmp_path / "made")
    builder.download_and_prepare()
    source = builder.as_data_source(split=building.SPLIT)
    assert {p.name.split(".")[-1].split("-")[0] for p in builder.data_path.glob(f"{name}-*")} == {"array_record"}
    rows = building.texts(source)
    assert records_of(name, paths, rows, module) == records_of(name, paths, None, module)
    assert "tensorflow" not in sys.modules
    assert "icence" in builder.info.description
    assert "title" in builder.info.citation


@pytest.mark.parametrize("name", NAMES)
def test_another_file_is_refused_as_the_original(name, tmp_path):
    module, _ = builders(name)
    with pytest.raises(ValueError, match="not the file expected: sha256"):
        module.Builder(paths=files_of(name, tmp_path), data_dir=tmp_path / "made").download_and_prepare()
    assert not [p for p in (tmp_path / "made").rglob("*record*") if p.is_file()]


def test_the_checksum_tables_say_what_the_code_says():
    known = {
        "olympic": {olympic_raw.URL: (41_500_688, olympic_raw.SHA256)},
        "ddxplus": {
            ddxplus_raw.URLS["evidences"]: (120_263, ddxplus_raw.SHA256[ddxplus_raw.EVIDENCES]),
            ddxplus_raw.URLS["patients"]: (18_986_243, ddxplus_raw.SHA256[ddxplus_raw.PATIENTS]),
        },
        "hinted_mcqa": {
            mmlu_raw.URL: (166_184_960, "bec563ba4bac1d6aaf04141cd7d1605d7a5ca833e38f994051e818489592989b")
        },
    }
    for name, table in known.items():
        module, _ = builders(name)
        assert set(module.Builder.URLS.values()) == set(table)
        for url, (size, sha256) in table.items():
            info = module.Builder.url_infos[url]
            assert (int(info.size), info.checksum) == (size, sha256)


def test_without_a_network_one_line_says_what_to_do(monkeypatch, tmp_path):
    for name in NAMES:
        module, building = builders(name)
        monkeypatch.setattr(module.Builder, "URLS", {"x": "http://127.0.0.1:1/none"})
        with pytest.raises(
            OSError, match=rf"none cannot be downloaded; put the file there yourself .* {module.Builder.VARIABLE}"
        ):
            building.download(module.Builder, tmp_path)


def test_the_real_olympic_file_has_the_stated_checksum(data_root):
    from jaxmon.tasks import files

    data = files.load(raw_files.real(data_root, "olympics/athlete_events.csv.gz"))
    assert (len(data), hashlib.sha256(data).hexdigest()) == (41_500_688, olympic_raw.SHA256)
