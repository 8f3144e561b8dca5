"""Items from a folder, a table or an embedding; what is no item is refused before anything is served."""

from pathlib import Path

import pytest

from nearkin.web.ask import read_items
from nearkin.web.ask.questions import read_catch
from tests.covering import each


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_pictures_of_a_folder_are_called_by_their_files(tmp_path: Path) -> None:
    for name in ("b.png", "a.JPG", "c.webp", "notes.txt"):
        (tmp_path / name).write_bytes(b"x")
    items = read_items(tmp_path)
    assert list(items.ids) == ["a", "b", "c"]
    assert items.shown(0) == {"number": 0, "text": "", "media": "image", "link": None}


def test_a_table_of_names(tmp_path: Path) -> None:
    for name, text in (("items.csv", "id\nred\ngreen\nblue\n"), ("items.txt", "red\ngreen\nblue\n")):
        items = read_items(write(tmp_path / name, text))
        assert list(items.ids) == list(items.texts) == ["red", "green", "blue"]


def test_a_table_with_pictures_texts_and_links(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"x")
    table = "id,text,image,link\n1,one,x.png,\n2,two,,https://example.org\n3,three,,\n"
    items = read_items(write(tmp_path / "items.csv", table))
    assert items.files[0] == tmp_path / "x.png"
    assert items.shown(1) == {"number": 1, "text": "two", "media": None, "link": "https://example.org"}


@each(
    ("table", "said"),
    [
        ("id,image\n1,../x.png\n2,\n3,\n", "lies outside"),
        ("id,image\n1,missing.png\n2,\n3,\n", "no picture or sound"),
        ("id,image\n1,notes.txt\n2,\n3,\n", "no picture or sound"),
        ("id,link\n1,javascript:alert(1)\n2,\n3,\n", "must begin with https"),
        ("id\na\nb\n", "at least 3"),
        ("id\na\nb\na\n", "repeat the name 'a'"),
    ],
)
def test_what_cannot_be_shown_is_refused(tmp_path: Path, table: str, said: str) -> None:
    write(tmp_path / "notes.txt", "x")
    with pytest.raises(ValueError, match=said):
        read_items(write(tmp_path / "items.csv", table))


def test_unknown_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="call the names' column id"):
        read_items(write(tmp_path / "items.csv", "x,y\na,b\nc,d\ne,f\n"))


def test_a_missing_or_empty_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_items(tmp_path / "nothing")
    with pytest.raises(ValueError, match="holds no picture"):
        read_items(tmp_path)


def test_catch_questions_name_items(tmp_path: Path) -> None:
    items = read_items(write(tmp_path / "items.csv", "id\nred\ngreen\nblue\n"))
    assert read_catch(write(tmp_path / "c.csv", "anchor,near,far\nblue,green,red\n"), items) == ((2, 1, 0),)
    with pytest.raises(ValueError, match="far 'pink' is not among the 3 known ids, such as"):
        read_catch(write(tmp_path / "c.csv", "anchor,near,far\nblue,green,pink\n"), items)
