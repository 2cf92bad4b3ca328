"""Opens pages in Chromium and checks what only a browser can tell: check.py BROWSER FOLDER-FOR-SCREENSHOTS PAGE...

Speaks the DevTools protocol over a pipe (file descriptors 3 and 4), so that nothing but Python is needed.
"""

import base64
import fcntl
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlparse


class Browser:
    """A tab of a headless Chromium."""

    def __init__(self, program, profile):
        low = [*os.pipe(), *os.pipe()]
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in low]  # out of the way of 3 and 4
        [os.close(end) for end in low]
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                   "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        script = f'exec "$@" 3<&{ends[0]} 4>&{ends[3]} 2>/dev/null'
        self.process = subprocess.Popen(["bash", "-c", script, "bash", *command], pass_fds=(ends[0], ends[3]))
        os.close(ends[0])
        os.close(ends[3])
        self.write, self.read = os.fdopen(ends[1], "wb", 0), os.fdopen(ends[2], "rb", 0)
        self.count, self.buffer, self.events, self.session = 0, b"", [], None
        target = next(one for one in self.ask("Target.getTargets")["targetInfos"] if one["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def receive(self):
        while b"\0" not in self.buffer:
            data = self.read.read(1 << 20)
            if not data:
                sys.exit("the browser has ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **parameters):
        self.count += 1
        request = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        self.write.write(json.dumps(request).encode() + b"\0")
        while True:
            message = self.receive()
            if message.get("id") == self.count:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def open(self, page):
        self.events = []
        self.ask("Page.navigate", url=Path(page).resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())
        self.evaluate("document.fonts.ready.then(() => 0)")

    def evaluate(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            sys.exit(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def screen(self, width, height, scheme="light", media=""):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def shot(self, path):
        whole = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(whole["data"]))

    def problems(self):
        """What the console complained about since the page was opened."""
        bad = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [event["params"] for event in self.events if event.get("method") in bad]

    def close(self):
        self.write.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


# Texts of figures that are seen, in pixels: the height of their letters follows the size of the SVG.
TEXTS = """[...document.querySelectorAll("figure svg text, figure svg tspan")].filter(text => text.checkVisibility()).map(text =>
    [parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getScreenCTM().a, text.textContent])"""

# Boxes of texts in one panel that lie on each other, by more than a few pixels each way.
OVERLAPS = """[...document.querySelectorAll("figure svg.panel")].filter(svg => svg.checkVisibility()).flatMap(svg => {
    const boxes = [...svg.querySelectorAll("text")].filter(text => text.checkVisibility() && !text.getAttribute("transform")?.includes("-38"))
        .map(text => [text.getBoundingClientRect(), text.textContent]);
    return boxes.flatMap(([a, one], i) => boxes.slice(i + 1).filter(([b]) =>
        Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 5)
        .map(([, other]) => `${one} / ${other}`));
})"""

# Texts of figures that reach out of their SVG.
OUTSIDE = """[...document.querySelectorAll("figure svg.panel")].filter(svg => svg.checkVisibility()).flatMap(svg => {
    const frame = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text")].filter(text => text.checkVisibility()).filter(text => {
        const box = text.getBoundingClientRect();
        return box.left < frame.left - 2 || box.right > frame.right + 2 || box.bottom > frame.bottom + 2;
    }).map(text => text.textContent);
})"""

# Sorts every table by every column, up and down, with the keyboard's way (a click on the button), and reports columns out of order.
SORTED = """[...document.querySelectorAll("table.data")].flatMap((table, which) => {
    const wrong = [], rows = table.tBodies[0].rows.length;
    [...table.tHead.rows[0].cells].forEach((head, column) => {
        const button = head.querySelector("button");
        if (!button) { if (rows > 1) wrong.push(`table ${which} column ${column}: no button`); return; }
        for (const way of [1, -1]) {
            button.click();
            const values = [...table.tBodies[0].rows].map(row => row.cells[column]?.dataset.v).filter(v => v !== undefined).map(Number);
            if (values.some((value, i) => i > 0 && way * (value - values[i - 1]) < 0)) wrong.push(`table ${which} column ${column}`);
            const said = head.getAttribute("aria-sort");
            if (said !== (way > 0 ? "ascending" : "descending")) wrong.push(`table ${which} column ${column} says ${said}`);
        }
        if (table.tBodies[0].rows.length !== rows) wrong.push(`table ${which} lost rows`);
    });
    return wrong;
})"""

# Filters the first long table by a word of its last row: that row stays, and fewer are seen than before, unless all have the word.
FILTERED = """(() => {
    const box = document.querySelector(".filter input");
    if (!box) return document.querySelectorAll("table.data tbody").values().some(body => body.rows.length >= 8) ? "no box" : "";
    const rows = [...box.closest("section").querySelector("tbody").rows], last = rows.at(-1);
    const seen = () => rows.filter(row => row.checkVisibility()).length, type = text => { box.value = text; box.dispatchEvent(new Event("input")); };
    type("no such word");
    if (seen() !== 0) return "a word that does not occur leaves rows";
    type(last.cells[0].textContent.toUpperCase());
    if (!last.checkVisibility()) return "a row is not found by its name";
    type("");
    return seen() === rows.length ? "" : "rows do not come back";
})()"""

LINKS = """[...document.querySelectorAll("a[href]")].map(link => link.href.baseVal ?? link.href).map(href => new URL(href, location).href)"""

# Pictures of examples: shown ones that lead to none, and kept ones that cannot be decoded.
PICTURES = """(async () => {
    const lost = [...document.querySelectorAll("use")].map(use => use.getAttribute("href")).filter(href => !document.querySelector(href));
    const decode = image => { const one = new Image(); one.src = image.getAttribute("href"); return one.decode().then(() => "", () => image.id); };
    return [...lost, ...(await Promise.all([...document.querySelectorAll("image")].map(decode))).filter(id => id)];
})()"""

BRIGHTNESS = """(() => {
    const of = colour => { const [r, g, b] = colour.match(/[\\d.]+/g).map(Number); return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255; };
    const figure = document.querySelector("figure, section"), text = document.querySelector("figure svg.panel text");
    return [getComputedStyle(document.body).backgroundColor, getComputedStyle(figure).backgroundColor,
        getComputedStyle(document.body).color, text ? getComputedStyle(text).fill : getComputedStyle(document.body).color].map(of);
})()"""


def check(browser, page, shots):
    """What is wrong with a page."""
    wrong = []
    if not Path(page).exists():
        return [f"{page}: there is no such page"]
    name = "-".join(Path(page).parent.parts[-2:])

    def expect(holds, what):
        if not holds:
            wrong.append(f"{page}: {what}")

    def looked_at(how):
        expect(not browser.problems(), f"{how}: the console says {browser.problems()[:2]}")
        wide = browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        expect(wide <= 0, f"{how}: {wide} pixels wider than the screen")
        small = [text for size, text in browser.evaluate(TEXTS) if size < 10.99]
        expect(not small, f"{how}: texts of figures below 11 pixels: {small[:5]}")
        for what, expression in (("lie on each other", OVERLAPS), ("reach out of their figure", OUTSIDE)):
            found = browser.evaluate(expression)
            expect(not found, f"{how}: texts {what}: {found[:5]}")
        browser.shot(shots / f"{name}-{how}.png")

    browser.screen(390, 844)
    browser.open(page)
    looked_at("phone")
    browser.screen(820, 1180)
    browser.open(page)
    looked_at("tablet")
    browser.screen(1280, 900, "dark")
    browser.open(page)
    looked_at("dark")
    back, box, ink, letters = browser.evaluate(BRIGHTNESS)
    expect(back < 0.2 and box < 0.2 and ink > 0.7 and letters > 0.7, f"dark: brightness {back, box, ink, letters}")
    browser.screen(1280, 900)
    browser.open(page)
    looked_at("desktop")
    back, box, ink, letters = browser.evaluate(BRIGHTNESS)
    expect(back > 0.8 and box > 0.8 and ink < 0.3 and letters < 0.3, f"light: brightness {back, box, ink, letters}")
    tall = browser.evaluate("[...document.querySelectorAll('table.data td')].map(cell => [cell.clientHeight, cell.textContent])"
                            ".filter(([height]) => height > 80)")
    expect(not tall, f"desktop: cells of four lines: {tall[:3]}")
    mute = browser.evaluate("[...document.querySelectorAll('svg.panel')].filter(svg => svg.getAttribute('role') !== 'img' ||"
                            "!svg.getAttribute('aria-label') || !svg.querySelector('desc').textContent).length")
    mute += browser.evaluate("[...document.querySelectorAll('.card svg')].filter(svg => !svg.getAttribute('aria-label')).length")
    expect(mute == 0, f"{mute} panels without alternative text")
    broken = browser.evaluate(PICTURES)
    expect(not broken, f"pictures that are not seen: {broken[:3]}")
    ids = browser.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
    expect(len(ids) == len(set(ids)), "an id occurs twice")
    unsorted = browser.evaluate(SORTED)
    expect(not unsorted, f"not sorted: {unsorted[:5]}")
    filtered = browser.evaluate(FILTERED)
    expect(not filtered, f"filter: {filtered}")
    expect(not browser.problems(), f"after sorting: {browser.problems()[:2]}")
    dead = {link for link in browser.evaluate(LINKS) if not Path(unquote(urlparse(link).path)).exists()}
    expect(not dead, f"links that lead nowhere: {sorted(dead)[:3]}")
    browser.screen(794, 1123, "dark", "print")
    browser.open(page)
    back = browser.evaluate(BRIGHTNESS)
    expect(back[0] > 0.95 and back[2] < 0.3, f"print: brightness {back}")
    expect(browser.evaluate("![...document.querySelectorAll('.filter')].some(one => one.checkVisibility())"), "print: filters")
    browser.screen(794, 1123)
    printed = browser.ask("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=True)
    (shots / f"{name}.pdf").write_bytes(base64.b64decode(printed["data"]))
    return wrong


def main():
    program, shots, *pages = sys.argv[1:]
    if not pages:
        sys.exit("no pages to look at")
    wrong = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            for page in pages:
                wrong += check(browser, page, Path(shots))
        finally:
            browser.close()
    print("\n".join(wrong))
    print(f"{len(pages)} pages in the browser, {len(wrong)} problems; screenshots in {shots}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
