"""Answers that other programs collected: small files as those programs write them."""

import csv
import json

import pytest

import nearkin as nk

SALMON = """\
head,winner,loser,left,right,puid,response_time,head_filename,winner_filename,loser_filename,alg_ident
0,1,2,1,2,ann,1.2,fox.png,dog.png,owl.png,ARR
2,0,1,1,0,bob,0.8,owl.png,fox.png,dog.png,random
"""


def in_words(answers):
    return answers.objects[answers.indices].tolist()


def test_salmon_csv(tmp_path):
    path = tmp_path / "responses.csv"
    path.write_text(SALMON)
    answers = nk.data.read_salmon(path)
    assert in_words(answers) == [[0, 1, 2], [2, 0, 1]]
    assert answers.annotators.tolist() == ["ann", "bob"]
    assert answers.source.roles == {"anchor": "head", "near": "winner", "far": "loser", "annotator": "puid"}
    assert answers.source.first == "0 is nearer to 1 than to 2"
    assert in_words(nk.data.read_salmon(path, names="filename"))[0] == ["fox.png", "dog.png", "owl.png"]


def test_salmon_json_of_older_versions(tmp_path):
    """They have no loser: it is the side that did not win."""
    path = tmp_path / "responses.json"
    rows = [
        {"head": 0, "left": 2, "right": 1, "winner": 1, "puid": 7, "time_received": 1600000000.5},
        {"head": 2, "left": 0, "right": 1, "winner": 0, "puid": 8, "time_received": 1600000001.5},
    ]
    path.write_text(json.dumps(rows))
    answers = nk.data.read_salmon(path)
    assert in_words(answers) == [[0, 1, 2], [2, 0, 1]]
    assert answers.annotators.tolist() == [7, 8]
    rows[1]["winner"] = 5
    path.write_text(json.dumps(rows))
    with pytest.raises(ValueError, match="row 1 has the winner 5, which is neither left nor right"):
        nk.data.read_salmon(path)


TRIALS = [
    {"rt": 900, "stimulus": "<p>Welcome</p>", "response": 0, "trial_type": "html-button-response", "trial_index": 0},
    {"rt": 700, "response": 1, "trial_type": "html-button-response", "trial_index": 1, "subject": "s1",
     "anchor": "fox", "left": "owl", "right": "dog"},
    {"rt": None, "response": None, "trial_type": "html-button-response", "trial_index": 2, "subject": "s1",
     "anchor": "fox", "left": "cat", "right": "owl"},
    {"rt": 650, "response": 0, "trial_type": "html-button-response", "trial_index": 3, "subject": "s2",
     "anchor": "cat", "left": "dog", "right": "owl"},
]  # fmt: skip


def write_trials(path, trials=TRIALS):
    """As jsPsych does: every cell of a .csv quoted, null as "null" and what a trial lacks as nothing."""
    if path.suffix == ".json":
        path.write_text(json.dumps(trials))
        return path
    if path.suffix == ".jsonl":  # JATOS: a line a participant
        path.write_text("\n".join(json.dumps(part) for part in (trials[:3], trials[3:])))
        return path
    keys = list(dict.fromkeys(key for trial in trials for key in trial))
    with path.open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(keys)
        writer.writerows(["null" if t.get(k, "") is None else t.get(k, "") for k in keys] for t in trials)
    return path


@pytest.mark.parametrize("ending", [".csv", ".json", ".jsonl"])
def test_jspsych_triplets(tmp_path, ending):
    path = write_trials(tmp_path / f"data{ending}")
    answers = nk.data.read_jspsych(path, items=("anchor", "left", "right"), rater="subject")
    assert in_words(answers) == [["fox", "dog", "owl"], ["cat", "dog", "owl"]]
    assert answers.annotators.tolist() == ["s1", "s2"]
    assert answers.source.notes[-2:] == ("1 trials that show no items left aside", "1 without an answer dropped")
    assert answers.source.roles["response"] == "response"


def test_jspsych_keys_and_the_odd_one(tmp_path):
    trials = [{"key_press": key, "a": 10, "b": 11, "c": 12} for key in "jkl"]
    path = write_trials(tmp_path / "data.json", trials)
    options = {"items": ("a", "b", "c"), "response": "key_press", "form": "odd-one-out"}
    answers = nk.data.read_jspsych(path, choices=("j", "k", "l"), **options)
    assert in_words(answers)[:4:2] == [[11, 12, 10], [10, 12, 11]]  # a is odd, then b
    assert answers.events.tolist() == [0, 0, 1, 1, 2, 2]
    with pytest.raises(ValueError, match=r"row 0 has the key_press 'j'; it must be one of 0, 1, 2. Give choices"):
        nk.data.read_jspsych(path, **options)


def test_jspsych_errors(tmp_path):
    path = write_trials(tmp_path / "data.json")
    with pytest.raises(ValueError, match=r"items is 'ref', which .* lacks"):
        nk.data.read_jspsych(path, items=("ref", "left", "right"))
    with pytest.raises(ValueError, match="items names 2 columns"):
        nk.data.read_jspsych(path, items=("left", "right"))
    for text in ("{", "[1, 2]", "", "[]", "\x00"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"is no JSON|holds no trials"):
            nk.data.read_jspsych(path, items=("a", "b", "c"))


def test_cblearn():
    from_cblearn = nk.data.comparisons_from_cblearn
    assert from_cblearn([[0, 1, 2], [1, 2, 0]], [1, -1]).indices.tolist() == [[0, 1, 2], [1, 0, 2]]
    assert from_cblearn([[0, 1, 2, 3]], [False]).indices.tolist() == [[2, 3, 0, 1]]
    odd = from_cblearn([[0, 1, 2], [0, 1, 2]], [2, 0], form="odd-one-out")
    assert odd.indices[::2].tolist() == [[0, 1, 2], [1, 2, 0]]
    assert odd.events.tolist() == [0, 0, 1, 1]
    central = from_cblearn([[0, 1, 2]], [1], form="most-central")
    assert central.indices.tolist() == [[0, 1, 2], [2, 1, 0]]
    pivot = from_cblearn([[5, 0, 1, 2], [5, 3, 4, 0]], [1, 0], form="pivot")
    assert pivot.indices.tolist() == [[5, 1, 0], [5, 1, 2], [5, 3, 4], [5, 3, 0]]
    assert pivot.events.tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match=r"y must be \(1,\) integers from 0 to 2"):
        from_cblearn([[0, 1, 2]], [3], form="odd-one-out")
