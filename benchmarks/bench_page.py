"""Measure how fast the page is with a thousand models: `python -m benchmarks.bench_page`.

First paint is the browser's own first contentful paint, in a fresh profile, from a server on this
machine. An interaction is measured inside the page: from the event to the second frame after it,
which is when what it changed has been painted. Until then, `processor` is what the thread of the
page took: script, style, layout and paint, whatever else the machine does.
"""

import os
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page

from tests.page.boards import crowd
from tests.page.tab import serving
from tools.browser import launched

RUNS = 5
SETTLED_MS = 300
"""Milliseconds after which a drawn view has finished its work."""
DRAWN_VIEW = "main:not([aria-busy]) > h2"


def choose_value(name: str, value: str) -> str:
    """Return the JavaScript that chooses a value of a list."""
    return (
        f"(({{ list }}) => {{ list.value = '{value}';"
        " list.dispatchEvent(new Event('change', { bubbles: true })) })"
        f"({{ list: document.querySelector('#{name}') }})"
    )


ADD_MODEL = """
[document.querySelector('#add').value = 'GROVER-1', document.querySelector('.add button').click()]
"""
TYPE_LETTER = """
((box) => { box.value = 'n'; box.dispatchEvent(new Event('input')) })(
  document.querySelector('#search'))
"""
STEPS = {
    "another regime": ("#/table", "document.querySelector('input[value=\"10shot\"]').click()"),
    "another metric": ("#/table", "document.querySelector('input[value=Acc]').click()"),
    "sort by a category": (
        "#/table",
        "document.querySelector('[data-focus=\"sort category:lncRNA\"]').click()",
    ),
    "a letter in the search": (
        "#/table",
        TYPE_LETTER,
    ),
    "next page": ("#/table", "document.querySelector('[data-focus=\"page next\"]').click()"),
    "all intervals": ("#/table", choose_value("intervals", "all")),
    "another kind of task": ("#/overview?species=human", choose_value("kind", "Splice Sites")),
    "only audited models": ("#/overview?species=human", choose_value("evidence", "audited+")),
    "colours over the table": ("#/table", choose_value("scale", "table")),
    "filter by size": ("#/table", choose_value("size", "100000000")),
    "filter by evidence": ("#/table", choose_value("evidence", "checked")),
    "tick a model": ("#/table", "document.querySelector('.pick input').click()"),
    "another GPU memory": ("#/overview?species=human", choose_value("memory", "8")),
    "sort 100 tasks": (
        "#/table?columns=tasks",
        "document.querySelector('[data-focus^=\"sort task:\"]').click()",
    ),
    "compare one more": ("#/compare?m=space-1&m=MutBERT-2", ADD_MODEL),
    "ranks of another kind of task": ("#/plots", choose_value("kind", "lncRNA")),
    "ranks of a species": ("#/plots?species=yeast", choose_value("species", "human")),
    "ranks, next page": ("#/plots", "document.querySelector('[data-focus=\"page next\"]').click()"),
    "curves of a species": ("#/plots?plot=curves&species=yeast", choose_value("species", "human")),
    "another task": ("#/plots?plot=task", choose_value("one-task", "leannmlindsey_GUE_mouse_0")),
    "correlation of other tasks": (
        "#/plots?plot=likeness&kind=lncRNA",
        choose_value("kind", "Histone Mod."),
    ),
    "sizes of another kind of task": ("#/plots?plot=sizes", choose_value("kind", "lncRNA")),
}
MEASURE_STEP = """
(step) => new Promise((resolve) => {
  const start = performance.now();
  step();
  requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - start)));
})
"""


def paint_times(browser: Browser, home: str, view: str) -> tuple[float, float]:
    """Return milliseconds to the first paint and until the view is drawn."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{home}{view}")
        page.wait_for_selector(DRAWN_VIEW)
        drawn_ms: float = page.evaluate("performance.now()")
        first_paint: float = page.evaluate(
            "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        )
        return first_paint, drawn_ms


def processor_ms(session: CDPSession) -> float:
    """Return milliseconds that the thread of the page has taken of a processor."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    seconds: float = next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")
    return 1000 * seconds


def interaction(page: Page, home: str, view: str, step: str) -> tuple[float, float]:
    """Return milliseconds of processor, and until the change is painted."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto("about:blank")
    page.goto(f"{home}{view}")
    page.wait_for_selector(DRAWN_VIEW)
    page.wait_for_timeout(SETTLED_MS)
    ms_before = processor_ms(session)
    painted_ms: float = page.evaluate(MEASURE_STEP.replace("step()", step))
    ms_taken = processor_ms(session) - ms_before
    session.detach()
    return ms_taken, painted_ms


def main() -> None:
    """Print both tables."""
    with tempfile.TemporaryDirectory() as temporary, launched() as browser:
        models = crowd(Path(temporary))
        with serving(Path(temporary)) as home:
            print("| first view | first paint | drawn |\n|---|---:|---:|")
            for view in ("#/overview", "#/table", "#/plots"):
                times = [paint_times(browser, home, view) for _ in range(RUNS)]
                first_paint, drawn_ms = (
                    statistics.median(column) for column in zip(*times, strict=True)
                )
                print(f"| {view} | {first_paint:.0f} ms | {drawn_ms:.0f} ms |")
            print("\n| interaction | processor | until painted |\n|---|---:|---:|")
            page = browser.new_page()
            for name, (view, step) in STEPS.items():
                times = [interaction(page, home, view, step) for _ in range(RUNS)]
                processor_time, painted_ms = (
                    statistics.median(column) for column in zip(*times, strict=True)
                )
                print(f"| {name} | {processor_time:.0f} ms | {painted_ms:.0f} ms |")
        version = browser.version
    load = os.getloadavg()[0]
    print(
        f"\nMedian of {RUNS} runs, {models} models, Chromium {version}, {os.cpu_count()} cores at"
    )
    print(f"a load average of {load:.1f}.")


if __name__ == "__main__":
    main()
