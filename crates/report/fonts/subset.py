"""Makes the two small fonts of the figures from Source Sans Pro: only the letters we use, under another name, as its licence
(OFL.txt) asks of modified versions. Run: python subset.py FOLDER_WITH_SourceSansPro_TTF (needs fonttools)."""
import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

LETTERS = [*range(0x20, 0x7F), *range(0xA0, 0x180), *range(0x391, 0x3CA), *map(ord, "–—‘’“”…→×·−±≤≥≈√∞′")]

for style, source in [("Regular", "Regular"), ("Bold", "Semibold")]:
    font = TTFont(Path(sys.argv[1]) / f"SourceSansPro-{source}.ttf")
    options = subset.Options(layout_features=["kern", "mark"], hinting=False, name_IDs=["*"])
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=LETTERS)
    subsetter.subset(font)
    names = {1: "Pudica Sans", 2: style, 3: f"Pudica Sans {style}", 4: f"Pudica Sans {style}", 6: f"PudicaSans-{style}"}
    font["name"].names = [n for n in font["name"].names if n.nameID in (0, 5, 13, 14)]
    for name_id, text in names.items():
        font["name"].setName(text, name_id, 3, 1, 0x409)
    font["OS/2"].usWeightClass = 700 if style == "Bold" else 400
    font.save(f"PudicaSans-{style}.ttf")
