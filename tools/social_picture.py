"""Writes leaderboard/social.png, the preview picture of links to the page.

It is drawn once and committed. If every build drew it, another version of the drawing library would
give other bytes, but one commit must give the same bytes everywhere. Run `python -m
tools.social_picture`.
"""

from pathlib import Path

from PIL import Image

from tools.browser import launched

TARGET = Path(__file__).resolve().parent.parent / "leaderboard/social.png"
SIZE = {"width": 1200, "height": 630}
COLOURS = 32
"""Colours of the file, which then has 15 kB."""
HEIGHTS = (0.42, 0.55, 0.49, 0.68, 0.61, 0.83, 0.74, 0.95)
DRAWING = """
<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="630" font-family="Arial">
<rect width="1200" height="630" fill="#fbfcfc"/><rect width="1200" height="14" fill="#0b6268"/>
<text x="80" y="190" font-size="108" font-weight="700" fill="#16211f">GENEB</text>
<text x="80" y="262" font-size="52" fill="#4f5d5a">leaderboard</text>
<g font-size="38" fill="#16211f">
<text x="80" y="470">Frozen embeddings of DNA foundation models,</text>
<text x="80" y="522">scored on 100 classification tasks.</text>
</g>
{bars}
</svg>
"""


def main() -> None:
    """Draw and write the picture."""
    bars = "".join(
        f'<rect x="{690 + 55 * column}" y="{400 - 300 * height:.0f}" width="40" '
        f'height="{300 * height:.0f}" fill="#0b6e74"/>'
        for column, height in enumerate(HEIGHTS)
    )
    with launched() as browser:
        page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
        page.set_content(f'<body style="margin:0">{DRAWING.format(bars=bars)}')
        page.screenshot(path=TARGET)
    with Image.open(TARGET) as picture:
        picture.convert("RGB").quantize(COLOURS).save(TARGET, optimize=True)


if __name__ == "__main__":
    main()
