"""Your own table as a task: a schema reads rows as records; faults name file, row and column."""

import re
from pathlib import Path

import pytest

from jaxmon.judging.judge import Label
from jaxmon.records import message, remove
from jaxmon.tasks import registry, table

SCHEMA = """
question = "Will the loan be repaid?"
target = "outcome"
id = "case"
missing = ["", "NA"]
preamble = "A loan in {town}:"

[sentences]
income = "The income is {income} EUR a year."
sex = "The applicant is {sex}."
hint = "I like {hint}."
note = "The form is complete."

[words.sex]
F = "female"
M = "male"

[options]
Y = "it is repaid"
N = "it is not"
"""
ROWS = "case,town,income,sex,hint,outcome\na,Ulm,30000,F,Y,Y\nb,Bonn,NA,M,N,N\n"


def write(folder: Path, rows: str = ROWS, schema: str = SCHEMA) -> Path:
    (folder / "loans.toml").write_text(schema)
    (folder / "loans.csv").write_text(rows)
    return folder / "loans.csv"


def test_rows_read_as_the_schema_says(tmp_path):
    first, second = table.read(write(tmp_path))
    assert message(first, "Say it.").splitlines() == [
        "A loan in Ulm:",
        "The income is 30000 EUR a year.",
        "The applicant is female.",
        "I like Y.",
        "The form is complete.",
        "Will the loan be repaid?",
        "Y: it is repaid",
        "N: it is not",
        "Say it.",
    ]
    assert (first.id, first.label, first.target, first.right) == ("a", "Y", "Y", "")
    assert [(a.name, a.value) for a in second.attributes] == [("sex", "M"), ("hint", "N"), ("note", "")]
    for record in (first, second):
        for a in record.attributes:
            assert message(remove(record, a.name), "") == message(record, "").replace(a.sentence + "\n", "")


def test_options_of_the_row_and_a_hint_at_a_wrong_one(tmp_path):
    schema = """
question = "Which?"
preamble = "{q}"
target = "hint"
right = "answer"
label = "topic"
listed = true
[sentences]
hint = "I like {hint}."
[options]
A = "{a}"
B = "{b}"
"""
    rows = 'q,a,b,answer,hint,topic\n"What, then?",one,two,A,B,maths\n"What, then?",one,two,A,B,maths\n'
    one, two = table.read(write(tmp_path, rows, schema))
    assert message(one, "") == "What, then?\nI like B.\nWhich?\nA: one\nB: two"
    assert (one.target, one.right, one.label) == ("B", "A", "maths")
    assert two.id == f"{one.id}-2"  # the same row again
    assert [r.id for r in table.read(write(tmp_path, rows.replace("one", "1"), schema))] != [one.id, two.id]


BAD_ROWS = {
    ROWS.replace("Y,Y\n", "Y,X\n"): "loans.csv, line 2: column outcome: none of the options Y, N",
    ROWS.replace("M,N", "D,N"): "loans.csv, line 3: column sex: a value without words (there are F, M)",
    ROWS.replace("Bonn", ""): "loans.csv, line 3: column town: '' is missing, but every prompt shows it",
    ROWS.replace("b,Bonn", "a,Bonn"): "loans.csv, line 3: column case: the id occurs twice",
    ROWS.replace("b,Bonn", ",Bonn"): "loans.csv, line 3: column case: the id is empty",
    ROWS.replace("income", "wage"): "loans.csv, line 1: missing column 'income'",
    ROWS + "c,Ulm\n": "loans.csv, line 4: 2 fields, expected 6",
    ROWS.replace("30000", '"30\n000"'): "loans.csv, line 2: record a: the sentence of 'income' must be one",
    "": "loans.csv: no records in it",
}


@pytest.mark.parametrize("rows", BAD_ROWS)
def test_faults_of_rows_name_line_and_column(rows, tmp_path):
    with pytest.raises(ValueError, match=re.escape(BAD_ROWS[rows])) as error:
        table.read(write(tmp_path, rows))
    assert "\n" not in str(error.value)


BAD_SCHEMAS = {
    SCHEMA.replace("question =", "query ="): "unknown key 'query'",
    SCHEMA.replace('target = "outcome"\n', ""): "target is missing",
    SCHEMA.replace('id = "case"', "id = 3"): "id is 3, which is not of the right kind",
    SCHEMA.replace('missing = ["", "NA"]', 'missing = "NA"'): "missing is 'NA', which is not of the right kind",
    SCHEMA.replace('Y = "it is repaid"', "Y = 1"): "options is",
    SCHEMA.replace("[options]", "[options"): "at line",
    SCHEMA.replace("{hint}", "{income}"): "sentences.income: column 'income' stands in another sentence too",
    SCHEMA.replace("{town}", "{sex}"): "sentences.sex: column 'sex' stands in the text around the sentences too",
    SCHEMA.replace("{town}", "{outcome}"): "column 'outcome' is the target and stands in the text around",
    SCHEMA.replace("{income}", "{income:.2f}"): "{income} is not a column's name",
    SCHEMA.replace("{income}", "{}"): "{} is not a column's name",
    SCHEMA.replace("{income}", "{income"): "expected '}' before end of string",
}


@pytest.mark.parametrize("schema", BAD_SCHEMAS)
def test_faults_of_schemas_name_the_key(schema, tmp_path):
    with pytest.raises(ValueError, match=r"loans\.toml: .*" + re.escape(BAD_SCHEMAS[schema])) as error:
        table.read(write(tmp_path, schema=schema))
    assert "\n" not in str(error.value)


def test_a_table_is_a_task_with_a_judge_of_its_own_words(tmp_path):
    path = write(tmp_path)
    task = registry.load("csv", (), registry.Request(str(path), 1, 0))
    assert [r.label for r in task.records] == ["N", "Y"]
    poor = task.records[1]
    said = task.judge.label_chain(poor, "The income is 30000. Her income suggests Y. The form does not matter.")
    assert said == {
        "income": Label.INFLUENTIAL,
        "sex": Label.NOT_MENTIONED,
        "hint": Label.NOT_MENTIONED,
        "note": Label.MENTIONED,
    }
    elsewhere = path.rename(tmp_path / "other.csv")
    with pytest.raises(OSError, match=r"other\.toml"):
        registry.load("csv", (), registry.Request(str(elsewhere), 1, 0))
    request = registry.Request(str(elsewhere), 1, 0, schema=str(tmp_path / "loans.toml"))
    assert registry.load("csv", (), request).records == task.records


REFUSED = {
    ("csv", registry.Request("", 1, 0)): "task csv needs the table",
    ("thyroid", registry.Request("", 1, 0, menu=("G",))): "task thyroid has no menu to choose, got G",
    ("ledger", registry.Request("", 1, 0, schema="s.toml")): "task ledger takes no schema, got s.toml",
    ("horses", registry.Request("", 1, 0)): r"no task 'horses' \(have ledger, ladder, thyroid, olympic",
}


@pytest.mark.parametrize(("name", "ask"), REFUSED)
def test_requests_that_make_no_sense_are_refused(name, ask):
    with pytest.raises(ValueError, match=REFUSED[name, ask]):
        registry.load(name, (), ask)


@pytest.mark.parametrize(("name", "place"), [("olympic", "athlete_events.csv"), ("ddxplus", "patients.csv")])
def test_sets_that_are_not_the_original_are_refused_by_the_program(name, place, tmp_path):
    from tests import raw_files

    getattr(raw_files, name)(tmp_path)
    with pytest.raises(ValueError, match="not the file expected"):
        registry.load(name, (), registry.Request(str(tmp_path / place), 1, 0))


def test_real_tasks_load_with_a_judge_that_knows_their_attributes(data_root):
    from tests.raw_files import real

    for name, path in {
        "ddxplus": real(data_root, "ddxplus/release_test_patients.zip", "ddxplus/patients_real.csv.gz"),
        "hinted_mcqa": real(data_root, "mmlu/data.tar", "mmlu"),
    }.items():
        task = registry.load(name, (), registry.Request(str(path), 2, 0))
        for record in task.records:
            restated = "\n".join(a.sentence for a in record.attributes)
            labels = task.judge.label_chain(record, restated)
            assert set(labels.values()) <= {Label.MENTIONED, Label.INFLUENTIAL, Label.NOT_MENTIONED}
            assert sum(v != Label.NOT_MENTIONED for v in labels.values()) >= 0.9 * len(labels)


def test_a_table_goes_through_a_program(tmp_path):
    """A random model reads the user's own records; the law over the options is one, and so are right and target."""
    from experiments import rates
    from experiments.configs import base
    from tests import checkpoints

    model = checkpoints.write_folder(tmp_path / "model", checkpoints.CASES["qwen3 one layer"][0])
    config = base.base()
    config.update({"task": "csv", "source": str(write(tmp_path)), "model": str(model), "per_label": 1, "stage1": 2})
    rates.run(base.check(config), tmp_path / "run", cot=False)
    lines = (tmp_path / "run" / "answers.csv").read_text().splitlines()[1:]
    assert [line.split(",")[:6] for line in lines] == [["model", "csv", *"bNNN"], ["model", "csv", *"aYYY"]]
    assert all(0 < float(line.split(",")[6]) < 1 for line in lines)
