"""The board in the frame of a Space: sandboxed, of another origin, below an address of its own."""

import mimetypes
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, Route

from tests.page.site import SPACE, Tags

LINK = re.compile(r'<a\s(?:[^>"]|"[^"]*")*>')
INNER = "https://owner-name.static.hf.space"
# What the Hub does with a message of the frame: it writes both parts into its own address.
OUTER = f"""<!doctype html><title>The Space</title>
<iframe id="space" allow="clipboard-write" width="1200" height="800" sandbox="allow-downloads
 allow-forms allow-popups allow-popups-to-escape-sandbox allow-same-origin allow-scripts"></iframe>
<script>
  const frame = document.getElementById("space");
  frame.src = "{INNER}/index.html" + (location.search || "?__sign=secret") + location.hash;
  addEventListener("message", (event) => {{
    if (event.source !== frame.contentWindow || event.origin !== "{INNER}") return;
    const {{ queryString, hash }} = event.data;
    history.replaceState(null, "", (queryString && "?" + queryString) + hash);
  }});
</script>
"""


@pytest.fixture
def outer(browser: Browser, folder: Path) -> Iterator[Page]:
    """Open the page of a Space, around the board with all its pages."""

    def board(route: Route) -> None:
        path = folder / route.request.url.partition("?")[0].removeprefix(f"{INNER}/")
        kind = mimetypes.guess_type(path.name)[0] or "text/html"
        route.fulfill(body=path.read_bytes(), content_type=kind)

    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        context.route(f"{INNER}/**", board)
        context.route(f"{SPACE}**", lambda r: r.fulfill(body=OUTER, content_type="text/html"))
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(SPACE)
        yield page
        # What Chromium says of the sandbox that the Hub chose.
        assert [
            complaint for complaint in complaints if "can escape its sandboxing" not in complaint
        ] == []


def inside(page: Page) -> FrameLocator:
    """Return the board in the frame, drawn."""
    frame = page.frame_locator("#space")
    frame.locator("main:not([aria-busy]) > h2").wait_for()
    return frame


def test_the_window_around_the_board_has_its_state_and_a_reload_comes_back(outer):
    frame = inside(outer)
    frame.locator("#views [data-view=table]").click()
    frame.locator(".scores").wait_for()
    frame.locator("#search").fill("GROVER")
    outer.wait_for_function("location.hash.includes('GROVER')")
    assert outer.url == f"{SPACE}#/table?q=GROVER"
    frame.locator("#link").click()
    frame.get_by_text("The address of this view is copied.").wait_for()
    assert outer.evaluate("navigator.clipboard.readText()") == outer.url
    outer.reload()
    frame = inside(outer)
    assert frame.locator(".scores tbody .model").all_inner_texts() == ["GROVER"]
    # What leads out of the board opens in a window of its own, which no sandbox confines.
    outer.context.route("https://arxiv.org/**", lambda route: route.fulfill(body="the paper"))
    with outer.context.expect_page() as opened:
        frame.locator(".about").get_by_text("Paper").click()
    opened.value.wait_for_url("https://arxiv.org/**")
    assert opened.value.evaluate("window.opener") is None
    assert outer.url == f"{SPACE}#/table?q=GROVER"


def test_every_link_out_of_a_page_opens_beside_the_board(folder):
    outward = 0
    for path in sorted(folder.rglob("*.html")):
        links = LINK.findall(path.read_text("utf-8"))  # to parse whole pages takes 2 s
        for tag, attributes in Tags("".join(links)).found:
            if tag == "a" and attributes.get("href", "").startswith("http"):
                outward += 1
                name = (path.name, attributes["href"])
                assert (name, attributes.get("target")) == (name, "_blank")
                assert "noopener" in attributes.get("rel", "").split(), name
    assert outward > 100
