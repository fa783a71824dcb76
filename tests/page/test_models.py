"""One model, several models, and the plots of all."""

import pytest

from tests.page.boards import values
from tests.page.rows import BY_MACRO, PROMOTER, shown


def test_a_model_page_has_every_score(tab):
    page = tab.go("#/model/space")
    assert page.inner_text(".facts").count("checked, not rerun") == 1
    tables = page.locator("main .scroller table")
    assert tables.nth(0).locator("tbody tr").count() == 15
    assert tables.nth(1).locator("tbody tr").count() == 100
    row = next(
        r for r in values()["leaderboard_tasks.json"]["data"]["10shot"] if r["model"] == "space"
    )
    cells = tables.nth(1).locator("td.heat:nth-child(6)").all_inner_texts()
    scores = [cell.split("\n")[0] for cell in cells]
    assert scores == [shown(s) for s in row["task_MCC"].values()]


def test_a_matrix_is_the_one_that_geneb_ci_matrices_recovers(tab):
    page = tab.go("#/model/space")
    page.select_option("#matrix", PROMOTER)
    tab.drawn()
    assert f"task={PROMOTER}" in tab.address()
    assert page.locator("#matrix").input_value() == PROMOTER
    cells = [cell.replace(",", "") for cell in tab.texts(".matrix tbody td")]
    right_small, wrong_small, recall = int(cells[0]), int(cells[1]), float(cells[2])
    wrong_large, right_large = int(cells[3]), int(cells[4])
    row = next(
        r for r in values()["leaderboard_tasks.json"]["data"]["full"] if r["model"] == "space"
    )
    total = right_small + wrong_small + wrong_large + right_large
    assert (right_small + right_large) / total == pytest.approx(row["task_Acc"][PROMOTER], abs=1e-4)
    assert recall == pytest.approx(right_small / (right_small + wrong_small), abs=5e-4)


def test_history_is_text(tab):
    page = tab.go("#/model/space")
    assert tab.texts(".history li")[-1].startswith(
        "2026-11-20 relabel, checked to audited: an audit <b>agrees</b>"
    )
    assert page.locator(".history b").count() == 0


def test_comparing_up_to_four_models(tab):
    page = tab.go("#/table")
    boxes = page.locator(".scores tbody .pick input")
    for order in range(4):
        boxes.nth(order).check()
    assert page.inner_text("#chosen") == "(4)"
    boxes.nth(4).click()
    assert not boxes.nth(4).is_checked()
    assert page.inner_text("#status") == "4 models are compared already: take one out first."
    page.locator("#views").get_by_text("Compare").click()
    tab.drawn()
    assert tab.texts(".compared .model") == BY_MACRO[:4]
    assert tab.texts(".comparison thead a") == BY_MACRO[:4]
    assert page.locator("#chart-profile svg .mark").count() == 4 * 15 + 4
    assert page.locator("#add").is_disabled()
    page.get_by_role("button", name=f"Remove {BY_MACRO[1]}").click()
    tab.drawn()
    page.fill("#add", "space")
    page.get_by_role("button", name="Add", exact=True).click()
    tab.drawn()
    assert tab.texts(".compared .model") == [BY_MACRO[0], *BY_MACRO[2:4], "space"]
    assert page.locator(".comparison strong").count() == 15


def test_a_name_that_does_not_exist_cannot_be_added(tab):
    page = tab.go("#/compare")
    page.fill("#add", "nobody")
    page.keyboard.press("Enter")
    assert page.inner_text("#status") == "No model has this name: choose one from the list."
