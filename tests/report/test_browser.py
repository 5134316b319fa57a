"""The page in a real browser: what a person sees, clicks and types."""

import base64
import csv
import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

pytest.importorskip("selenium", reason="selenium is not installed (the dev extra)")
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from elugcn.api import Fitted
from elugcn.report import write_report
from tests.report.conftest import EVIL, ODD_ID, records
from tests.report.test_members import TRIALS, details, trial

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip
DESKTOP, PHONE = 1280, 400
Browser = webdriver.Chrome


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
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
def page(browser: Browser, run: Path) -> Iterator[Browser]:
    """The page, freshly opened; afterwards its console must be empty."""
    look(browser, DESKTOP)
    browser.get_log("performance")
    browser.get((run / "report.html").as_uri())
    yield browser
    assert browser.get_log("browser") == []


def look(browser: Browser, width: int, dark: bool = False, media: str = "") -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [scheme], "media": media}
    )


def column(page: Browser, index: int) -> list[str]:
    """A column of the rows that are shown, as the source has it."""
    script = (
        "return [...document.querySelectorAll('#table tbody tr')]"
        f".map((row) => row.cells[{index}].textContent)"
    )
    return list(page.execute_script(script))


def press(page: Browser, selector: str, key: str = Keys.SPACE) -> None:
    """Operate a control by the keyboard."""
    page.find_element(By.CSS_SELECTOR, selector).send_keys(key)


def where(page: Browser) -> str:
    return page.find_element(By.ID, "where").text


@pytest.fixture(scope="module")
def truth(run: Path) -> dict[str, dict[str, str]]:
    with (run / "predictions.csv").open(newline="", encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def test_the_summary_comes_first_and_names_are_text(page: Browser) -> None:
    first = page.find_element(By.CSS_SELECTOR, "main > section")
    assert re.match(r"\d+%\s+accuracy on \d+ validation nodes", first.text)
    assert first.rect["y"] + first.rect["height"] < 900  # without scrolling
    assert page.find_elements(By.CSS_SELECTOR, "img, #table b") == []
    assert page.title == f"elu-gcn on {EVIL}"
    assert EVIL in page.find_element(By.TAG_NAME, "body").text
    assert page.execute_script("return document.scripts.length") == 1


def test_no_request_leaves_the_page(page: Browser, run: Path) -> None:
    press(page, "#wrong")
    urls = set()
    for entry in page.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            urls.add(message["params"]["request"]["url"].partition(",")[0])
    assert urls <= {(run / "report.html").as_uri(), "data:image/png;base64"}
    # The policy holds against a script that got in all the same.
    blocked = page.execute_async_script(
        "const done = arguments[0];"
        "document.addEventListener('securitypolicyviolation', (e) => "
        "done(e.blockedURI)); fetch('https://example.org/leak').catch(() => {});"
    )
    assert blocked == "https://example.org/leak"
    page.get_log("browser")  # which has the refusal that was provoked


def test_every_link_leads_to_a_section(page: Browser) -> None:
    links = page.find_elements(By.CSS_SELECTOR, "nav a")
    assert len(links) == 10
    for link in links:
        anchor = str(link.get_attribute("href")).rpartition("#")[2]
        assert page.find_element(By.CSS_SELECTOR, f"#{anchor} h2").text == link.text
        assert page.find_element(By.ID, anchor).size["height"] > 50


def test_the_table_is_filtered(page: Browser, truth: dict[str, Any]) -> None:
    assert where(page) == "1–25 of 90"
    press(page, "[data-kind=unreachable]")
    unreachable = {i for i, r in truth.items() if r["utilization"] == "unreachable"}
    assert len(unreachable) == 10
    assert set(column(page, 0)) == unreachable
    press(page, "[data-kind=nelu]")
    nelu = sum(row["utilization"] == "nelu" for row in truth.values())
    assert where(page).endswith(f"of {nelu + 10}")
    for box in ("[data-kind=unreachable]", "[data-kind=nelu]", "#wrong"):
        press(page, box)
    assert all(a != b for a, b in zip(column(page, 1), column(page, 2), strict=True))
    press(page, "#wrong")
    press(page, "#search", "N 7,")
    assert column(page, 0) == [ODD_ID]
    press(page, "#search", Keys.BACKSPACE * 4 + "no such node")
    assert column(page, 0) == []
    assert where(page) == "no node matches"


def test_the_table_is_sorted_and_paged(page: Browser, truth: dict[str, Any]) -> None:
    shares = [float(text.rstrip("%")) for text in column(page, 3)]
    assert shares == sorted(shares)
    head = page.find_element(By.CSS_SELECTOR, "#table th:nth-child(4)")
    assert head.get_attribute("aria-sort") == "ascending"
    press(page, "#table th:nth-child(4) button", Keys.ENTER)
    assert head.get_attribute("aria-sort") == "descending"
    most = max(float(row["confidence"]) for row in truth.values())
    assert column(page, 3)[0] == f"{100 * most:.1f}%"
    press(page, "#table th:first-child button")
    assert head.get_attribute("aria-sort") is None
    # Numbers in ids count as numbers: n 2 comes before n 10.
    assert column(page, 0)[:4] == ["n 0", "n 1", "n 2", "n 3"]
    for _ in range(3):
        press(page, "#after", Keys.ENTER)
    assert where(page) == "76–90 of 90"
    assert column(page, 0)[-1] == "n 89"
    assert not page.find_element(By.ID, "after").is_enabled()
    press(page, "#before", Keys.ENTER)
    assert where(page) == "51–75 of 90"


def test_everything_is_reached_by_the_tab_key(page: Browser) -> None:
    seen: list[str] = []
    while "Configuration" not in seen and len(seen) < 90:
        page.switch_to.active_element.send_keys(Keys.TAB)
        # What has the focus is marked.
        name, outline = page.execute_script(
            "const e = document.activeElement;"
            "return [e.id || e.textContent.slice(0, 20), getComputedStyle(e).outlineStyle]"
        )
        assert outline != "none" or page.switch_to.active_element.tag_name == "body"
        seen.append(name)
    names = {"Accuracy", "search", "wrong", "id", "confidence", "after"}
    assert names | {"Configuration"} <= set(seen)


CONTRAST = """
const parse = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
const solid = (e) => {
  for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c;
  }
};
const light = (c) => {
  const [r, g, b] = c.slice(0, 3).map((v) => {
    v /= 255;
    return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
return [...document.querySelectorAll("p, li, td, th, label, button, a, h1, h2, h3")]
  .filter((e) => e.offsetWidth && e.textContent.trim() && !e.disabled
    && !e.matches(".confusion td"))
  .map((e) => {
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(solid(e))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05),
      parseFloat(getComputedStyle(e).fontSize), e.textContent.slice(0, 30)];
  });
"""


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_fits_and_can_be_read(page: Browser, width: int, dark: bool) -> None:
    look(page, width, dark)
    page.refresh()
    # Nothing hangs over the edge, which would make a phone scroll sideways.
    assert page.execute_script("return document.documentElement.scrollWidth") == width
    for contrast, size, text in page.execute_script(CONTRAST):
        assert contrast >= 4.5, (contrast, text)
        assert size >= 12, (size, text)
    pixels = imread(io.BytesIO(page.get_screenshot_as_png()))[:, :, :3].mean(axis=2)
    # Light on dark or dark on light, and neither blank.
    assert bool(pixels.mean() < 0.4) is dark
    assert float(np.std(pixels)) > 0.04


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_members_fit_on_a_phone(
    browser: Browser, six: Fitted, tmp_path: Path, dark: bool
) -> None:
    members = [trial("tf-idf [N, N², X, NX, N²X], ELU targets ×4, round 2", 0.5, True)]
    write_report(
        records(tmp_path, details=details(trials=members + TRIALS)), fitted=six
    )
    look(browser, PHONE, dark)
    browser.get((tmp_path / "report.html").as_uri())
    press(browser, "#members summary", Keys.ENTER)
    tables = browser.find_elements(By.CSS_SELECTOR, "#members table")
    assert [table.is_displayed() for table in tables] == [True, True]
    script = "return [...document.querySelectorAll('html, #members .scroll')]"
    script += ".map((e) => e.scrollWidth - e.clientWidth)"
    assert browser.execute_script(script) == [0, 0, 0]
    for contrast, size, text in browser.execute_script(CONTRAST):
        assert contrast >= 4.5, (contrast, text)
        assert size >= 12, (size, text)
    assert browser.get_log("browser") == []


OVERLAPS = """
const overlap = (a, b) => a.left < b.right && b.left < a.right
  && a.top < b.bottom - 2 && b.top < a.bottom - 2;
return [...document.querySelectorAll("svg.figure")].flatMap((figure) => {
  const boxes = [...figure.querySelectorAll("text")].map((t) => t.getBoundingClientRect());
  return boxes.filter((a, i) => boxes.slice(0, i).some((b) => overlap(a, b)));
});
"""


def test_names_beside_figures_do_not_overlap(page: Browser) -> None:
    assert len(page.find_elements(By.CSS_SELECTOR, "svg.figure text")) > 20
    assert page.execute_script(OVERLAPS) == []


def test_paper_is_light_and_without_controls(page: Browser) -> None:
    look(page, DESKTOP, dark=True, media="print")
    body = page.find_element(By.TAG_NAME, "body")
    assert body.value_of_css_property("color") == "rgba(28, 32, 38, 1)"
    assert not page.find_element(By.ID, "search").is_displayed()
    assert base64.b64decode(page.print_page()).startswith(b"%PDF")
