"""A real browser without a window, spoken to over pipes in its own protocol: nothing to install beside the browser.

Invariant: what a page says on its console, every error and every request is kept; the browser ends with the test.
"""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import sys
from pathlib import Path
from shutil import which
from types import TracebackType
from typing import Any

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")
BROWSERS = [path for path in (which(name) for name in NAMES) if path][:1]  # empty where there is none
PIPES = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
PATIENCE = 60.0  # seconds for one answer, on a machine that does other things too


class Browser:
    """One page in one browser."""

    def __init__(self, path: str, folder: Path, width: int = 1200, height: int = 1600) -> None:
        hear, their_mouth = os.pipe()
        their_ear, speak = os.pipe()
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe")
        own = (f"--user-data-dir={folder}", f"--window-size={width},{height}", "about:blank")
        launch = [sys.executable, "-c", PIPES, str(their_ear), str(their_mouth), path, *options, *own]
        with (folder / "browser.log").open("wb") as log:
            self.process = subprocess.Popen(launch, pass_fds=(their_ear, their_mouth), stdout=log, stderr=log)
        os.close(their_mouth)
        os.close(their_ear)
        self.hear, self.speak, self.waiting, self.count = hear, speak, b"", 0
        self.session: str | None = None
        self.said: list[dict[str, Any]] = []  # events: console, exceptions, log

    def __enter__(self) -> Browser:
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.session = None
        self("Browser.close")
        self.process.wait(PATIENCE)
        os.close(self.hear)
        os.close(self.speak)

    def __call__(self, method: str, **given: Any) -> dict[str, Any]:
        """Ask for something; what happens meanwhile is kept."""
        self.count += 1
        asked = {"id": self.count, "method": method, "params": given}
        if self.session:
            asked["sessionId"] = self.session
        os.write(self.speak, json.dumps(asked).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.count:
                assert "error" not in answer, answer
                found: dict[str, Any] = answer["result"]
                return found
            self.said.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.waiting:
            ready, _, _ = select.select([self.hear], [], [], PATIENCE)
            assert ready, "the browser says nothing"
            part = os.read(self.hear, 1 << 20)
            assert part, "the browser is gone"
            self.waiting += part
        first, _, self.waiting = self.waiting.partition(b"\0")
        found: dict[str, Any] = json.loads(first)
        return found

    def open(self, page: Path) -> None:
        """Until its script has run, or will not run any more."""
        before = self._loaded()
        self("Page.navigate", url=page.resolve().as_uri())
        while self._loaded() == before:
            self.said.append(self._next())

    def _loaded(self) -> int:
        return sum(event.get("method") == "Page.loadEventFired" for event in self.said)

    def ask(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def mouse(self, what: str, x: float, y: float, **more: Any) -> None:
        self("Input.dispatchMouseEvent", type=what, x=x, y=y, **more)

    def screenshot(self, path: Path, whole: bool = False) -> None:
        path.write_bytes(base64.b64decode(self("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))

    def complaints(self) -> list[str]:
        """Errors and warnings on the console, exceptions, and requests that went anywhere but to the file."""
        self("Runtime.evaluate", expression="0")  # all that was said before has arrived
        found = [json.dumps(event) for event in self.said if event.get("method") == "Runtime.exceptionThrown"]
        for event in self.said:
            given = event.get("params", {})
            if event.get("method") == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
                found.append(given["entry"]["text"])
            if event.get("method") == "Runtime.consoleAPICalled":
                found.append(json.dumps(given["args"]))
            if event.get("method") == "Network.requestWillBeSent" and not given["request"]["url"].startswith("file:"):
                found.append(given["request"]["url"])
        return found
