"""The thyroid data set as a tensorflow-datasets builder, without TensorFlow; downloads from a local server."""

import hashlib
import http.server
import sys
import threading
from pathlib import Path

import pytest

from jaxmon.tasks import thyroid
from jaxmon.tasks.thyroid import raw, wording
from tests.thyroid_files import SMALL, real_file


def builders():
    """The builder's module; slow to import, and quiet."""
    from jaxmon.tasks import building
    from jaxmon.tasks.thyroid import thyroid_dataset_builder as module

    building.tfds.disable_progress_bar()
    return module, building


def patients(rows):
    from jaxmon.tasks.thyroid.thyroid_dataset_builder import patient

    return [patient(row) for row in rows]


def test_the_builder_works_without_tensorflow(tmp_path):
    module, building = builders()
    builder = module.Builder(paths={"patients": SMALL}, config=module.other_file(SMALL, 1), data_dir=tmp_path)
    builder.download_and_prepare()
    source = builder.as_data_source(split=building.SPLIT)
    assert [p.name.split(".")[-1].split("-")[0] for p in builder.data_path.glob("thyroid-*")] == ["array_record"]
    assert len(source) == 9
    assert source[0]["id"] == b"900000008"
    assert wording.records(patients(building.texts(source))) == thyroid.records(SMALL, None, more_than=1)
    by_name = building.tfds.data_source(
        f"thyroid/{builder.builder_config.name}", split=building.SPLIT, data_dir=tmp_path
    )
    assert [dict(e) for e in by_name] == [dict(e) for e in source]
    assert "tensorflow" not in sys.modules
    assert "CC BY 4.0" in builder.info.description
    assert "10.24432/C5D010" in builder.info.citation


def test_the_builder_refuses_another_file_as_the_archive(tmp_path):
    module, _ = builders()
    with pytest.raises(ValueError, match="not the file expected: sha256"):
        module.Builder(paths={"patients": SMALL}, data_dir=tmp_path).download_and_prepare()
    assert not list(tmp_path.glob("thyroid/archive/1.0.0/*"))
    assert module.other_file(SMALL, 1).name != module.other_file(SMALL, 2).name != "archive"


def test_the_checksum_table_says_what_the_code_says():
    url, size, digest, name = (Path(raw.__file__).parent / "checksums.tsv").read_text().split()
    assert (url, size, digest, name) == (raw.URL, "772576", raw.SHA256, raw.FILE)
    assert builders()[0].Builder.url_infos[raw.URL].checksum == raw.SHA256


@pytest.fixture
def served(monkeypatch):
    """The small file at a local address, in place of the archive's."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path.startswith("/small.data") else 404)
            self.end_headers()
            if self.path.startswith("/small.data"):
                self.wfile.write(SMALL.read_bytes())

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_downloads(served, tmp_path, monkeypatch):
    module, building = builders()
    monkeypatch.setattr(module.Builder, "URLS", {"patients": f"{served}/small.data"})
    with pytest.raises(ValueError, match="not the file expected: sha256"):
        building.download(module.Builder, tmp_path / "wrong")
    wrong = building.tfds.download.checksums.UrlInfo(size=1, checksum="0" * 64, filename=raw.FILE)
    with monkeypatch.context() as patch:
        again = f"{served}/small.data?again"  # the library remembers checksums by address
        patch.setattr(module.Builder, "URLS", {"patients": again})
        patch.setattr(module.Builder, "url_infos", {again: wrong})
        with pytest.raises(ValueError, match="has wrong checksum") as error:
            building.download(module.Builder, tmp_path / "wrong")
        assert "\n" not in str(error.value)
    digest = hashlib.sha256(SMALL.read_bytes()).hexdigest()
    config = building.FilesConfig(name="archive", sha256={"patients": digest}, choice={"more_than": 1})
    monkeypatch.setattr(module.Builder, "BUILDER_CONFIGS", [config])
    assert wording.records(patients(building.download(module.Builder, tmp_path))) == thyroid.records(
        SMALL, None, more_than=1
    )
    monkeypatch.setattr(module.Builder, "URLS", {"patients": f"{served}/gone"})
    assert len(building.download(module.Builder, tmp_path)) == 9  # prepared already: nothing is asked of the network
    with pytest.raises(OSError, match="/gone cannot be downloaded; put the file there yourself"):
        building.download(module.Builder, tmp_path / "again")
    monkeypatch.setattr(module.Builder, "URLS", {"patients": "http://127.0.0.1:1/none"})
    with pytest.raises(OSError, match="cannot be downloaded"):
        building.download(module.Builder, tmp_path / "again")


def test_the_real_file_through_the_builder(data_root, tmp_path):
    real = real_file(data_root)
    module, building = builders()
    builder = module.Builder(paths={"patients": real}, data_dir=tmp_path)
    builder.download_and_prepare()
    source = builder.as_data_source(split=building.SPLIT)
    assert wording.records(patients(building.texts(source))) == thyroid.records(real)
