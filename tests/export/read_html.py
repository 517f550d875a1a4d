"""Reads an exported report like a browser, and checks for unclosed tags and external references."""

import base64
import io
import json
import sys
from html.parser import HTMLParser

from PIL import Image

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.unbalanced, self.outside, self.headings = [], [], [], []
        self.captions = []
        self.kind = None
        self.scripts = self.without_text = self.jpegs = self.broken = 0

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        self.scripts += tag == "script" or any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "xlink:href", "action", "data", "srcset"):
            value = attributes.get(name)
            if value and not value.startswith("data:image/jpeg;base64,"):
                self.outside.append(value)
        if tag == "img":
            self.without_text += not attributes.get("alt")
            self.jpegs += 1
            try:
                Image.open(io.BytesIO(base64.b64decode(attributes["src"].split(",", 1)[1]))).load()
            except Exception:
                self.broken += 1
        if tag == "h2":
            self.headings.append("")
        self.kind = attributes.get("class") if tag == "span" else None
        if self.kind == "name":
            self.captions.append({})

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        self.kind = None
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.headings[-1] += data
        if self.kind in ("name", "seen"):
            self.captions[-1][self.kind] = data
        if self.open and self.open[-1] == "style" and ("url(" in data or "@import" in data):
            self.outside.append("style")


page = Page()
with open(sys.argv[1], encoding="utf-8") as file:
    page.feed(file.read())
page.close()
print(
    json.dumps(
        {
            "unbalanced": page.unbalanced + page.open,
            "from_outside": page.outside,
            "scripts": page.scripts,
            "images_without_text": page.without_text,
            "jpegs": page.jpegs,
            "broken_jpegs": page.broken,
            "headings": page.headings,
            "captions": [[caption["name"], caption["seen"]] for caption in page.captions],
        }
    )
)
