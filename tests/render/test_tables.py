"""One table, two notations: columns line up on a terminal, also under wide characters."""

from geneb_ci.render.table import Table, wrapped_text

TABLE = Table(("model", "rank"), [("a", "10"), ("模型", "9")], right_aligned=frozenset({"rank"}))


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


RULES = Table(("rule", "what it looks for"), [("some-rule", "one two three four five six seven")])
NUMBERS = Table(
    ("task", "MCC"), [("a_task_with_a_long_name", "0.5")], right_aligned=frozenset({"MCC"})
)


def test_a_table_that_fits_is_as_it_was():
    assert RULES.fitted_rows(80) == [[line] for line in RULES.text_lines()]


def test_text_in_the_last_column_is_wrapped():
    assert RULES.fitted_rows(36, head=False) == [
        ["some-rule  one two three four five", "           six seven"]
    ]


def test_text_has_lines_of_its_own_where_there_is_little_room():
    assert RULES.fitted_rows(24, head=False) == [
        ["some-rule", "    one two three four", "    five six seven"]
    ]


def test_numbers_are_never_wrapped():
    assert NUMBERS.fitted_rows(20) == [
        ["task", "    MCC"],
        ["a_task_with_a_long_n", "ame", "    0.5"],
    ]


def test_longer_lines_are_wrapped_below_their_first():
    assert wrapped_text("short\n\n  one two three\n", 10) == "short\n\n  one two\n      three\n"
