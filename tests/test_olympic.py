"""The olympic task: an invented file in the raw format; the counts of SPEC §11 where the real file is there."""

import re
from collections import Counter

import pytest

from jaxmon.records import message
from jaxmon.tasks import olympic
from jaxmon.tasks.olympic import raw, wording
from tests.raw_files import EVENTS, real
from tests.raw_files import athletes as cached
from tests.raw_files import olympic as write

SPORTS = ("Rowing", "Judo")
GOLDEN = ["83305", "41787", "28439"]


def test_one_row_per_athlete_with_all_measures_and_one_sport(tmp_path):
    found = {a.id: a for a in raw.read(write(tmp_path), None)}
    assert list(found) == ["1", "2", "5", "6", "7"]  # 3 has no age, 4 has two sports
    assert found["1"].values == {
        "sex": "F",
        "age": "21",  # the earlier Games
        "height": "170",
        "weight": "60.5",
        "country": "Ruritania",  # without the number of the team
        "season": "Summer",
        "city": "Roma",
        "medal": "Silver",  # the better medal of these Games
    }
    assert found["2"].values["country"] == "Ruritania"  # not the boat club
    assert found["6"].values["age"] == "27"  # the earlier row has no height
    assert "country" not in found["6"].values  # not known


def test_winter_came_before_summer_of_one_year(tmp_path):
    lines = (*EVENTS[:1], *(line.replace(",Judo,", ",Curling,") for line in EVENTS[6:8][::-1]))
    (only,) = raw.read(write(tmp_path, lines), None)
    assert only.values["season"] == "Winter"


def test_a_record_reads_as_plain_english(tmp_path):
    records = olympic.records(write(tmp_path), None, SPORTS, 1)
    assert [(r.id, r.label, r.target) for r in records[:1]] == [("olympic-5", "Judo", "A")]
    assert message(records[0], "Say it.").splitlines() == [
        "What is known of an athlete at the Olympic Games:",
        "The athlete is male.",
        "The athlete is 22 years old.",
        "The athlete is 175 cm tall.",
        "The athlete weighs 66.333333 kg.",
        "The athlete's country is Graustark.",
        "The Games were Summer Games.",
        "The host city was Athens.",
        "The athlete won no medal.",
        "In which of these sports did the athlete compete?",
        "A: Judo",
        "B: Rowing",
        "Say it.",
    ]


def test_draws_are_seeded_nest_and_ignore_the_other_sports(tmp_path):
    athletes = [raw.Athlete(str(i), "Rowing" if i % 2 else "Judo", {}) for i in range(40)]
    small, large = raw.select(athletes, SPORTS, 3), raw.select(athletes[::-1], SPORTS, 5)
    assert small == large[:3] + large[5:8]
    assert raw.select(athletes, ("Rowing", "Judo"), 3, seed=1) != small == raw.select(athletes, ("Judo", "Rowing"), 3)
    assert [a.sport for a in small] == ["Judo"] * 3 + ["Rowing"] * 3


def changed(column: str, text: str) -> str:
    fields = EVENTS[1].split(",")
    fields[EVENTS[0].split(",").index(column)] = text
    return ",".join(fields)


BAD = {
    changed("Sex", "f"): "Sex is 'f', expected F, M",
    changed("Age", "x"): "Age is 'x', expected a number",
    changed("Age", "240"): "Age is 240, expected 1 to 120",
    changed("Height", "1.7"): "Height is 1.7, expected 50 to 300",
    changed("Weight", ""): "Weight is '', expected a number",
    changed("Season", "Spring"): "Season is 'Spring', expected Summer, Winter",
    changed("Medal", "Tin"): "Medal is 'Tin', expected Gold, Silver, Bronze, NA",
    changed("City", ""): "City is ''",
    changed("NOC", "NA"): "NOC is 'NA'",
    changed("ID", "1a"): "ID and Year are '1a' and '1992', expected whole numbers",
    changed("Medal", "NA,NA"): "16 fields, expected 15",
}


@pytest.mark.parametrize("line", BAD)
def test_malformed_rows_are_refused_by_file_and_line(line, tmp_path):
    path = write(tmp_path, (*EVENTS[:3], line, *EVENTS[3:]))
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 4: {BAD[line]}")):
        raw.read(path, None)


def test_other_bad_files_and_menus(tmp_path):
    path = write(tmp_path)
    with pytest.raises(ValueError, match=r"athlete_events.csv: not the file expected: sha256"):
        olympic.load(path)
    with pytest.raises(ValueError, match="the sport 'Judo' has 1 athletes; 2 are asked for"):
        olympic.records(path, None, SPORTS, 2)
    with pytest.raises(ValueError, match=r"no athlete of the sport 'Golf' \(there are Curling, Judo, Rowing\)"):
        olympic.records(path, None, ("Golf", "Judo"), 1)
    with pytest.raises(ValueError, match="two or more different ones, got Judo"):
        olympic.records(path, None, ("Judo",), 1)
    with pytest.raises(ValueError, match="27 sports, at most 26 have a letter"):
        wording.options([f"s{i}" for i in range(27)])


def test_counts_of_the_real_file(data_root):
    athletes = cached(real(data_root, "olympics/athlete_events.csv", "olympics/athlete_events.csv.gz"))
    sizes = Counter(a.sport for a in athletes)
    assert (len(athletes), len(sizes)) == (98_688, 54)
    assert sum(n >= raw.PER_SPORT for n in sizes.values()) == 48
    assert sorted(name for name, _ in sizes.most_common(14)) == sorted(raw.SPORTS)  # the default, as stated
    chosen = raw.select(athletes)
    assert Counter(a.sport for a in chosen) == dict.fromkeys(raw.SPORTS, 225)
    records = wording.records(chosen)
    assert len(records) == 3150
    assert {len(r.options) for r in records} == {14}
    assert {a.name for r in records for a in r.attributes} == set(raw.ATTRIBUTES)
    values = {a.values["country"] for a in athletes if "country" in a.values}
    assert {"Singapore", "Soviet Union", "Bolivia"} <= values
    assert not [v for v in values if re.search(r"-\d+$", v)]
    assert [a.id for a in chosen[::225]][:3] == GOLDEN  # the draw is stable
