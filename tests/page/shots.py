"""Pictures of every view for people: `python -m tests.page.shots [FOLDER]`."""

import sys
import tempfile
from pathlib import Path

from tests.page.boards import crowd, public
from tests.page.tab import opened
from tools.browser import launched

VIEWS = {
    "overview": "#/overview",
    "overview-need": "#/overview?species=plants&examples=hundreds&memory=16",
    "table": "#/table?m=space",
    "table-tasks": "#/table?columns=tasks",
    "table-category": "#/table?columns=tasks%3ASplice+Sites&intervals=all&regime=10shot"
    "&sort=category%3ASplice+Sites",
    "model": "#/model/space",
    "compare": "#/compare?m=space&m=GROVER&m=MutBERT&m=DNABERT-S",
    "plots": "#/plots?m=space&m=GROVER",
    "plots-sizes": "#/plots?plot=sizes&m=space",
    "plots-curves": "#/plots?plot=curves&species=plants",
    "plots-task": "#/plots?plot=task&task=leannmlindsey_GUE_mouse_0&m=space&m=GROVER",
    "plots-likeness": "#/plots?plot=likeness&kind=Histone+Mod.",
    "downloads": "#/downloads",
    "about": "#/about",
}
LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 850}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 850}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}
# A model page has a hundred tasks: its top tells enough.
TALL_MAX = 4000  # pixels


def main(folder: Path) -> None:
    """Write the pictures, and the table as it prints."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, launched() as browser:
        boards = {"": Path(temporary, "public"), "crowd-": Path(temporary, "crowd")}
        public(boards[""])
        crowd(boards["crowd-"])
        for prefix, board in boards.items():
            for look, options in LOOKS.items():
                with opened(browser, f"{board.as_uri()}/index.html", **options) as tab:
                    for name, view_address in VIEWS.items():
                        if prefix and name not in {"table", "plots", "overview"}:
                            continue
                        page = tab.go(view_address)
                        height = page.evaluate("document.documentElement.scrollHeight")
                        width = page.viewport_size["width"] if page.viewport_size else 0
                        clip = {"x": 0, "y": 0, "width": width, "height": min(height, TALL_MAX)}
                        path = folder / f"{prefix}{name}-{look}.png"
                        page.screenshot(path=path, full_page=True, clip=clip)  # type: ignore[arg-type]
        with opened(browser, f"{boards[''].as_uri()}/index.html") as tab:
            tab.go("#/table").pdf(path=folder / "table-print.pdf", format="A4", landscape=True)
    sys.stdout.write(f"{len(list(folder.iterdir()))} files in {folder}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/page-shots"))
