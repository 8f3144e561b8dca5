"""The page's table is replaced where it stands."""

from collections import Counter

from tests.faults.table import Row, markdown, write_table


def test_the_table_of_a_page_is_replaced(tmp_path) -> None:
    page, old = tmp_path / "page.md", [Row("a", 1), Row("b", 2)]
    page.write_text(f"# Page\n\n{markdown(old)}\n\nMore.\n")
    write_table(page, [Row("a", 3, Counter(error=3))])
    assert page.read_text() == f"# Page\n\n{markdown([Row('a', 3, Counter(error=3))])}\n\nMore.\n"
