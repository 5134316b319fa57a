"""The page in a real browser: what a person sees, clicks and saves."""

import base64
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("selenium", reason="selenium is not installed (the dev extra)")
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

EVIL = "<img src=x onerror=alert(1)>"
LABELS = (EVIL, "Vögel, 鳥", 'a "quoted" one')
ODD_ID = "n 7,\n</script><b>"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip
DESKTOP, PHONE = 1280, 390


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the installed program on tables with names of every kind."""
    folder = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(0)
    n = 90
    ids = [ODD_ID if i == 7 else f"n {i}" for i in range(n)]
    rows = [
        [ids[i], f"{rng.normal(3 * (i % 3)):.3f}", f"{rng.normal():.3f}",
         LABELS[i % 3] if i % 3 or i % 2 else ""]
        for i in range(n)
    ]  # fmt: skip
    # Nodes 80 to 89 are a component without any label.
    for row in rows[80:]:
        row[3] = ""
    edges = [
        [ids[i], ids[(i + step) % 80]]
        for i in range(80)
        for step in (3, 6, 1)[: 2 + i % 2]
    ] + [[ids[i], ids[i + 1]] for i in range(80, 89)]
    for name, header, lines in (
        ("nodes.csv", ["id", "a", "b", "label"], rows),
        ("edges.csv", ["source", "target"], edges),
    ):
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *lines])
    done = subprocess.run(
        [Path(sys.executable).with_name("elugcn"), "train", "--nodes", "nodes.csv",
         "--edges", "edges.csv", "--set", "epochs=8", "--quiet", "--out", "run"],
        cwd=folder, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True,
        text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "run"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no chromium and chromedriver here (Debian: chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    logs = {"browser": "ALL", "performance": "ALL"}
    options.set_capability("goog:loggingPrefs", logs)
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


@pytest.fixture
def page(browser: webdriver.Chrome, run: Path) -> Iterator[webdriver.Chrome]:
    """The page, freshly opened; afterwards its console must be empty."""
    look(browser, DESKTOP)
    browser.get_log("performance")
    browser.get((run / "report.html").as_uri())
    yield browser
    assert browser.get_log("browser") == []


def look(browser: webdriver.Chrome, width: int, dark: bool = False) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def cells(page: webdriver.Chrome, column: str) -> list[str]:
    """A column of the table as its source has it, line breaks included."""
    found = page.find_elements(By.CSS_SELECTOR, f"#table tbody td.{column}")
    return [str(cell.get_attribute("textContent")) for cell in found]


def click(page: webdriver.Chrome, selector: str) -> None:
    element = page.find_element(By.CSS_SELECTOR, selector)
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()


def data_of(page: webdriver.Chrome) -> dict[str, Any]:
    found = page.execute_script("return document.getElementById('data').textContent")
    return dict(json.loads(found))


def records(run: Path) -> dict[str, dict[str, str]]:
    with (run / "predictions.csv").open(newline="", encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def test_labels_show_as_text_and_nothing_else_happens(page: webdriver.Chrome) -> None:
    assert page.find_elements(By.TAG_NAME, "img") == []
    assert page.find_elements(By.CSS_SELECTOR, "#table b") == []
    body = page.find_element(By.TAG_NAME, "body").text
    assert EVIL in body
    assert page.execute_script("return document.scripts.length") == 2


def test_no_request_leaves_the_page(page: webdriver.Chrome, run: Path) -> None:
    click(page, "#only-low")
    click(page, "input[value=utilization]")
    urls = set()
    for entry in page.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            urls.add(message["params"]["request"]["url"])
    assert urls == {(run / "report.html").as_uri()}
    # The policy holds against a script that got in all the same.
    blocked = page.execute_async_script(
        "const done = arguments[0];"
        "document.addEventListener('securitypolicyviolation', (e) => done(e.blockedURI));"
        "fetch('https://example.org/leak').catch(() => {});"
    )
    assert blocked == "https://example.org/leak"
    page.get_log("browser")  # which has the refusal that was provoked


def test_the_table_is_filtered(page: webdriver.Chrome, run: Path) -> None:
    truth = records(run)
    where = page.find_element(By.ID, "where")
    assert where.text == f"1–25 of {len(truth)}"
    click(page, "#only-unreachable")
    unreachable = {i for i, row in truth.items() if row["utilization"] == "unreachable"}
    assert len(unreachable) == 10
    assert set(cells(page, "id")) == unreachable
    click(page, "#only-nelu")
    nelu = sum(row["utilization"] == "nelu" for row in truth.values())
    assert where.text.endswith(f"of {nelu + 10}")
    click(page, "#only-unreachable")
    click(page, "#only-nelu")
    click(page, "#only-low")
    # What the label says is what is shown, and it is a quarter or more.
    (said,) = re.findall(r"under (\d+) %", page.find_element(By.TAG_NAME, "body").text)
    few = {
        i
        for i, row in truth.items()
        if float(f"{float(row['confidence']):.3f}") < int(said) / 100
    }
    assert len(few) >= len(truth) / 4
    assert where.text.endswith(f"of {len(few)}")
    assert set(cells(page, "id")) <= few
    click(page, "#only-low")
    search = page.find_element(By.ID, "search")
    search.send_keys("N 7,")
    assert cells(page, "id") == [ODD_ID]
    search.send_keys(Keys.BACKSPACE * 4, "no such node")
    assert cells(page, "id") == []
    assert where.text == "no node fits"


def test_filters_fade_the_map(page: webdriver.Chrome) -> None:
    assert page.find_elements(By.CSS_SELECTOR, "#plot .dim") == []
    click(page, "#only-unreachable")
    assert len(page.find_elements(By.CSS_SELECTOR, "#plot .dim")) == 80


def test_the_table_is_sorted_and_paged_by_keyboard(
    page: webdriver.Chrome, run: Path
) -> None:
    shares = [float(text.split()[0]) for text in cells(page, "confidence")]
    assert shares == sorted(shares)
    head = page.find_element(By.CSS_SELECTOR, "th[data-key=confidence]")
    head.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    assert head.get_attribute("aria-sort") == "descending"
    most = max(float(row["confidence"]) for row in records(run).values())
    assert cells(page, "confidence")[0] == f"{100 * most:.1f} %"
    page.find_element(By.CSS_SELECTOR, "th[data-key=id] button").send_keys(Keys.SPACE)
    assert head.get_attribute("aria-sort") == "none"
    # Numbers in ids count as numbers: n 2 comes before n 10.
    assert cells(page, "id")[:4] == ["n 0", "n 1", "n 2", "n 3"]
    for _ in range(3):
        page.find_element(By.ID, "after").send_keys(Keys.ENTER)
    assert page.find_element(By.ID, "where").text == "76–90 of 90"
    assert cells(page, "id")[-1] == "n 89"
    assert not page.find_element(By.ID, "after").is_enabled()


def test_the_map_is_coloured_and_tells_of_its_nodes(page: webdriver.Chrome) -> None:
    data = data_of(page)
    columns = data["columns"]
    points = page.find_elements(By.CSS_SELECTOR, "#plot circle:not(.focus)")
    assert len(points) == 90

    def kinds() -> list[str]:
        return [str(p.get_attribute("class")) for p in points]

    assert kinds() == [f"k{c}" for c in columns["prediction"]]
    click(page, "input[value=label]")
    assert kinds() == ["none" if c < 0 else f"k{c}" for c in columns["label"]]
    assert "unknown" in page.find_element(By.ID, "legend").text
    click(page, "input[value=utilization]")
    names = {1: "elu", 0: "nelu", -1: "unreachable"}
    assert kinds() == [names[s] for s in columns["utilization"]]
    # The point that is farthest to the right has nothing over it.
    node = max(range(90), key=lambda i: columns["x"][i])
    hover(page, points[node])
    tip = page.find_element(By.ID, "tip")
    c, p = columns["label"][node], columns["prediction"][node]
    assert tip.text.splitlines() == [
        columns["id"][node],
        f"class: {'unknown' if c < 0 else data['classes'][c]}",
        f"prediction: {data['classes'][p]}",
        f"confidence: {columns['confidence'][node] / 10:.1f} %",
        f"utilization: {({1: 'ELU', 0: 'NELU', -1: 'unreachable'})[columns['utilization'][node]]}",
    ]
    ActionChains(page).move_to_element(page.find_element(By.TAG_NAME, "h1")).perform()
    assert not tip.is_displayed()
    plot = page.find_element(By.ID, "plot")
    plot.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert tip.text.splitlines()[0] == columns["id"][1]


def hover(page: webdriver.Chrome, point: WebElement) -> None:
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", point)
    ActionChains(page).move_to_element(point).perform()


def test_names_of_classes_do_not_lie_upon_each_other(page: webdriver.Chrome) -> None:
    # An unsure model puts all nodes into the middle, whatever their classes.
    boxes = page.execute_script(  # type: ignore[no-untyped-call]
        """
        for (const name of MAP.plot.querySelectorAll("text")) name.remove();
        COLUMNS.x.fill(500);
        COLUMNS.y.fill(500);
        nameCorners();
        return [...MAP.plot.querySelectorAll("text")].map((name) => {
          const { x, y, width, height } = name.getBBox();
          return [x, y, x + width, y + height];
        });
        """
    )
    assert len(boxes) >= 2
    for i, (left, top, right, bottom) in enumerate(boxes):
        assert 0 <= left < right <= 1240
        assert 0 <= top < bottom <= 1160
        for other in boxes[:i]:
            beside = right < other[0] or other[2] < left
            assert beside or bottom < other[1] or other[3] < top


def test_the_table_is_exported(
    page: webdriver.Chrome, run: Path, tmp_path: Path
) -> None:
    page.execute_cdp_cmd(
        "Browser.setDownloadBehavior",
        {"behavior": "allow", "downloadPath": str(tmp_path)},
    )
    truth = records(run)
    click(page, "#only-nelu")
    click(page, "#only-unreachable")
    click(page, "#export")
    target = tmp_path / "nodes-elu-gcn-nodes.csv"
    for _ in range(100):
        if target.exists():
            break
        time.sleep(0.1)
    rows = list(
        csv.DictReader(io.StringIO(target.read_text(encoding="utf-8"), newline=""))
    )
    assert list(rows[0]) == [
        "id",
        "label",
        "prediction",
        "confidence",
        "utilization",
        "split",
    ]
    wanted = {i for i, row in truth.items() if row["utilization"] != "elu"}
    assert {row["id"] for row in rows} == wanted
    for row in rows:
        known = truth[row["id"]]
        assert row["prediction"] == known["prediction"]
        assert row["utilization"].lower() == known["utilization"]
        assert row["split"] == known["split"]
        assert float(row["confidence"]) == pytest.approx(
            float(known["confidence"]), abs=6e-4
        )


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_and_can_be_seen(
    page: webdriver.Chrome, width: int, dark: bool, tmp_path: Path
) -> None:
    look(page, width, dark)
    page.refresh()
    # Nothing hangs over the edge, which would make a phone scroll sideways.
    assert page.execute_script("return document.documentElement.scrollWidth") == width
    size = page.execute_script(
        "return Math.min(...[...document.querySelectorAll('p, td, th, label, button')]"
        ".filter((e) => e.offsetWidth).map((e) => parseFloat(getComputedStyle(e).fontSize)))"
    )
    assert size >= 12
    shot = page.execute_cdp_cmd(
        "Page.captureScreenshot", {"captureBeyondViewport": True}
    )
    png = base64.b64decode(shot["data"])
    (tmp_path / "page.png").write_bytes(png)
    with Image.open(tmp_path / "page.png") as image:
        assert image.width == width
        pixels = np.asarray(image.convert("L"), dtype=float)
    # Light on dark or dark on light, and neither blank.
    assert bool(pixels.mean() < 100) is dark
    assert pixels.std() > 10


def test_paper_is_light_and_without_controls(page: webdriver.Chrome) -> None:
    look(page, DESKTOP, dark=True)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    ink = page.execute_script("return getComputedStyle(document.body).color")
    assert ink == "rgb(28, 32, 38)"
    assert not page.find_element(By.ID, "search").is_displayed()
    assert page.find_element(By.ID, "plot").is_displayed()
    pdf = base64.b64decode(page.print_page())
    assert pdf.startswith(b"%PDF")
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
