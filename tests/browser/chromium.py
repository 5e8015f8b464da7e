"""A real Chromium, spoken to in its own protocol over a websocket: no driver, no library of its own."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
START_S, ANSWER_S = 60, 60


class Browser:
    """Sends commands over one websocket. Messages that answer nothing (requests, console) are kept for who asks."""

    def __init__(self, program: str, profile: Path) -> None:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-port=0"]
        quiet = ["--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"]
        self._log = profile.with_suffix(".log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [program, *options, *quiet, f"--user-data-dir={profile}", "about:blank"],
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self._loop = asyncio.new_event_loop()
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []
        try:
            self._loop.run_until_complete(self._connect(self._address()))
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def _address(self) -> str:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            found = re.search(r"DevTools listening on (ws://\S+)", self._log.read_text(errors="replace"))
            if found:
                return found[1]
            time.sleep(0.05)
        raise RuntimeError(f"Chromium did not start:\n{self._log.read_text(errors='replace')[-2000:]}")

    async def _connect(self, address: str) -> None:
        self._session = aiohttp.ClientSession()
        self._socket = await self._session.ws_connect(address, max_msg_size=0)

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        return self._loop.run_until_complete(self._send(method, session, parameters))

    async def _send(self, method: str, session: str | None, parameters: dict[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        await self._socket.send_json(message)
        while True:
            answer = json.loads(await self._socket.receive_str(timeout=ANSWER_S))
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def new_page(self) -> Page:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(browser=self, session=session, target=target)

    def close(self) -> None:
        self._loop.run_until_complete(self._socket.close())
        self._loop.run_until_complete(self._session.close())
        self._loop.close()
        self._process.terminate()
        self._process.wait()


@dataclass(kw_only=True)
class Page:
    browser: Browser
    session: str
    target: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)  # errors of console, policy and scripts

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.send(method, self.session, **parameters)

    def open(self, url: str, *, width: int = 1280, height: int = 900) -> Page:
        mobile = width < 600
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")
        return self

    def close(self) -> None:
        self.browser.send("Target.closeTarget", targetId=self.target)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        self._sort_events()
        return answer["result"].get("value")

    def until(self, script: str, *, seconds: float = 45) -> Any:
        """Wait for an expression to become true."""
        deadline = time.monotonic() + seconds
        while not (value := self.run(script)):
            assert time.monotonic() < deadline, f"never became true: {script}; the page says:\n{self.text()[:3000]}"
            time.sleep(0.1)
        return value

    def click(self, element: str) -> None:
        """A real click of the mouse in the middle of an element, once it is there."""
        self.until(f"!!({element})")
        x, y = self.run(
            f"(e => {{ e.scrollIntoView({{block: 'nearest'}}); const b = e.getBoundingClientRect();"
            f" return [b.x + b.width / 2, b.y + b.height / 2]; }})({element})"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def text(self) -> str:
        return self.run("document.body.innerText")

    def picture(self, path: Path, *, whole: bool = True) -> Path:
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))
        return path

    def pdf(self) -> bytes:
        return base64.b64decode(self.send("Page.printToPDF", printBackground=False)["data"])

    def _sort_events(self) -> None:
        mine = [event for event in self.browser.events if event.get("sessionId") == self.session]
        self.browser.events = [event for event in self.browser.events if event.get("sessionId") != self.session]
        for event in mine:
            method, body = event["method"], event["params"]
            if method == "Network.requestWillBeSent":
                self.requests.append(body["request"]["url"])
            elif method == "Log.entryAdded" and body["entry"]["level"] == "error":
                self.complaints.append(body["entry"]["text"])
            elif method == "Runtime.exceptionThrown":
                self.complaints.append(body["exceptionDetails"]["text"])
            elif method == "Runtime.consoleAPICalled" and body["type"] == "error":
                self.complaints.append(str(body["args"]))


def find_chromium() -> str | None:
    return next((path for name in CHROMIUM if (path := shutil.which(name))), None)
