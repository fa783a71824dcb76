"""One table, two notations: columns line up on a terminal, also under wide characters."""

from geneb_ci.render.tables import Table

TABLE = Table(("model", "rank"), [("a", "10"), ("模型", "9")], right=frozenset({"rank"}))


def test_columns_line_up_by_their_width_on_a_terminal():
    assert TABLE.text_lines() == ["model  rank", "a        10", "模型      9"]


def test_a_list_has_no_head_and_no_space_at_its_end():
    assert Table(("a", "b"), [("x", ""), ("long", "y")]).text_lines(head=False) == ["x", "long  y"]


def test_markdown_says_how_columns_are_aligned():
    assert TABLE.markdown_lines() == [
        "| model | rank |",
        "| --- | ---: |",
        "| a | 10 |",
        "| 模型 | 9 |",
    ]


def test_a_table_without_rows_is_its_head():
    assert Table(("a", "b"), []).text_lines() == ["a  b"]
    assert Table(("a", "b"), []).markdown_lines() == ["| a | b |", "| --- | --- |"]
