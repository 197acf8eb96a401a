"""A real JupyterLab server, and a notebook opened from it in a real Chromium."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import nbformat
from nbformat.sign import NotebookNotary
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, ViewportSize

ARTEFACTS = Path(__file__).parent / "artefacts"
START_SECONDS = 90
RUN_SECONDS = 240

# What would make a run differ from the next: news and updates, saving by itself, outputs detached while off screen.
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "docmanager-extension/plugin": {"autosave": False},
    "notebook-extension/tracker": {"windowingMode": "none"},
}


class Lab:
    """A running server: its address, and where it keeps everything; `root` is the folder that it serves."""

    def __init__(self, url: str, home: Path, page: str = "doc/tree/{}?reset") -> None:
        self.url, self.home, self.root = url, home, home / "root"
        self.page = page  # where a notebook is, by its name

    def write(self, notebook: str, *sources: str, outputs: Sequence[nbformat.NotebookNode] = ()) -> str:
        """A notebook of these cells, the first with these outputs. It names its kernel: JupyterLab asks otherwise."""
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        cells[0].outputs = list(outputs)
        metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), self.root / notebook)
        return notebook

    def trust(self, notebook: str) -> None:
        """Sign a notebook as `jupyter trust` does."""
        notary = NotebookNotary(data_dir=str(self.home / "data"))
        try:
            notary.sign(nbformat.read(self.root / notebook, as_version=4))
        finally:
            notary.store.close()

    def address(self, notebook: str) -> str:
        return self.url + self.page.format(notebook)


NO_NEWS = ["--LabApp.extension_manager=readonly", "--LabApp.news_url="]
NO_NEWS += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]


@contextmanager
def running_lab(home: Path) -> Iterator[Lab]:
    """JupyterLab of this interpreter with nothing of the user's: configuration, trust and kernels are all in `home`."""
    with _running(home, "jupyterlab", NO_NEWS) as url:
        yield Lab(url, home)


@contextmanager
def running_notebook(home: Path) -> Iterator[Lab]:
    """Notebook 7, likewise; its pages are driven as JupyterLab's are, for it is made of the same parts."""
    with _running(home, "notebook", []) as url:
        yield Lab(url, home, "notebooks/{}")


@contextmanager
def _running(home: Path, module: str, options: list[str]) -> Iterator[str]:
    root = home / "root"
    root.mkdir(parents=True)
    write_settings(home, SETTINGS)
    own = {f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    own |= {"IPYTHONDIR": str(home / "ipython"), "JUPYTERLAB_SETTINGS_DIR": str(home / "settings")}
    own |= {"JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"), "JUPYTER_PREFER_ENV_PATH": "1"}
    command = [sys.executable, "-m", module, "--no-browser", "--allow-root", "--expose-app-in-browser"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={_free_port()}", f"--ServerApp.root_dir={root}"]
    command += ["--IdentityProvider.token=", *options]
    log = home / "server.log"
    with log.open("w") as out:
        server = subprocess.Popen(command, env=os.environ | own, cwd=home, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield _wait_for(server, home / "runtime", log)
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def write_settings(home: Path, settings: dict[str, dict[str, Any]]) -> None:
    for name, values in settings.items():
        file = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(server: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    """The server's own note of its address, right also if the port was taken meanwhile; once it answers there."""
    note = runtime / f"jpserver-{server.pid}.json"
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        # The note is written in steps, and a little before the server listens.
        with suppress(OSError, json.JSONDecodeError):
            url = json.loads(note.read_text())["url"]
            with urlopen(f"{url}api/status", timeout=START_SECONDS):
                return url
        time.sleep(0.05)
    raise RuntimeError(f"the server did not start:\n{log.read_text()}")


# The servers' own files complain: JupyterLab's when a kernel goes (a debugger's request is cancelled), Notebook's of a
# plugin without settings. Not ours to judge.
THEIRS = ("/static/lab/", "/static/notebook/")


class Browser:
    """Pages of one context, with everything that went wrong in them."""

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        self._errors: list[str] = []
        self._addresses: list[str] = []
        self._reasons: list[str] = []
        self._known: list[Callable[[str], bool]] = []
        context.on("request", lambda request: self._request(request.url))
        context.on("weberror", lambda event: self._error(str(event.error.stack)))
        context.on("console", self._console)

    def _request(self, url: str) -> None:
        local = ("http://127.0.0.1:", "http://localhost:", "blob:", "data:", "file:", "about:")
        if not url.startswith(local):
            self._addresses.append(url)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(part in message.location["url"] for part in THEIRS):
            self._errors.append(f"{message.text} ({message.location['url'][:100]})")

    def _error(self, error: str) -> None:
        if not any(part in error for part in THEIRS):
            self._errors.append(error)

    @property
    def foreign(self) -> list[str]:
        """The addresses on the network that were asked for."""
        return [address for address in self._addresses if not self._expected(address)]

    @property
    def errors(self) -> list[str]:
        """What a console or an uncaught error said."""
        blocked = [address[:100] for address in self._addresses if self._expected(address)]
        return [error for error in self._errors if not any(part in error for part in (*self._reasons, *blocked))]

    def _expected(self, address: str) -> bool:
        return any(known(address) for known in self._known)

    def forgive(self, *reasons: str) -> None:
        """Errors with these words are none, be they seen or still to come: a console is often late."""
        self._reasons += reasons

    def forgive_requests(self, known: Callable[[str], bool]) -> None:
        """Nor are requests to these addresses, and that they failed."""
        self._known.append(known)

    def open_file(self, path: Path, dark: bool = False, size: ViewportSize | None = None) -> Page:
        page = self.context.new_page()
        if size is not None:  # from the start: what follows a change of it does so in the next frame
            page.set_viewport_size(size)
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.goto(path.as_uri())
        return page

    def keep(self, page: Page, name: str) -> None:
        """Keep a picture of the page, for a person to look at."""
        ARTEFACTS.mkdir(exist_ok=True)
        page.screenshot(path=ARTEFACTS / f"{name}.png")

    def open(self, lab: Lab, name: str) -> Notebook:
        """Open a notebook in the light theme, whatever the test before chose."""
        write_settings(lab.home, {"apputils-extension/themes": {"theme": "JupyterLab Light"}})
        page = self.context.new_page()
        page.goto(lab.address(name))
        return Notebook(page, self)


# The notebook in front; `panel` is JupyterLab's NotebookPanel.
PANEL = "const panel = window.jupyterapp.shell.currentWidget;"


class Notebook:
    """A notebook open in JupyterLab, driven as its menus would."""

    def __init__(self, page: Page, browser: Browser) -> None:
        self.page, self.browser = page, browser
        page.set_default_timeout(60_000)
        page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.context?.isReady")
        self._do("await panel.revealed; await panel.sessionContext.ready;")
        self.idle()

    def _do(self, body: str, arg: Any = None) -> Any:
        """Run a script in the page. A promise that never settles (a dialog is open, a kernel gone) fails in the end."""
        fail = f"setTimeout(() => fail(new Error('no answer to: ' + body)), {RUN_SECONDS * 1000})"
        late = f"new Promise((_, fail) => {fail})"
        script = f"([arg, body]) => Promise.race([(async () => {{ {PANEL} {body} }})(), {late}])"
        return self.page.evaluate(script, [arg, body])

    def idle(self) -> None:
        """Wait until no cell runs."""
        idle = f"() => {{ {PANEL} return panel.sessionContext.session?.kernel?.status === 'idle' }}"
        self.page.wait_for_function(idle, timeout=RUN_SECONDS * 1000)

    def run_all(self) -> None:
        """Run every cell and wait for the last; an error in a cell is an error here."""
        self._do("await window.jupyterapp.commands.execute('notebook:run-all-cells');")
        self.idle()
        errors = [output for output in self.outputs() if output["output_type"] == "error"]
        assert not errors, f"a cell failed: {errors[0]['ename']}: {errors[0]['evalue']}"

    def outputs(self) -> list[dict[str, Any]]:
        cells = self._do("return panel.context.model.toJSON().cells;")
        return [output for cell in cells for output in cell.get("outputs", [])]

    def python(self, expression: str) -> str:
        """What an expression is in the notebook's kernel, as its repr."""
        value = self._do(
            """const kernel = panel.sessionContext.session.kernel;
            const content = {code: '', silent: true, store_history: false, user_expressions: {value: arg}};
            const reply = await kernel.requestExecute(content).done;
            return reply.content.user_expressions.value;""",
            expression,
        )
        assert value["status"] == "ok", f"{expression}: {value}"
        return value["data"]["text/plain"]

    def wait_until(self, expression: str) -> None:
        """Wait until an expression is true in the kernel, to which the browser's messages are on their way."""
        for _ in range(300):
            if self.python(expression) == "True":
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"{expression} does not become true")

    def trusted(self) -> bool:
        code_cells = "[...panel.context.model.cells].filter(cell => cell.type === 'code')"
        return self._do(f"return {code_cells}.every(cell => cell.trusted);")

    def save(self) -> None:
        self._do("await panel.context.save();")

    def shut_down(self) -> None:
        """End the kernel and close the page."""
        self._do("await panel.sessionContext.shutdown();")
        self.page.close()

    def set_theme(self, name: str) -> None:
        """`JupyterLab Light` or `JupyterLab Dark`."""
        self._do("await window.jupyterapp.commands.execute('apputils:change-theme', {theme: arg});", name)
        light = "true" if name.endswith("Light") else "false"
        self.page.wait_for_function("light => document.body.dataset.jpThemeLight === light", arg=light)

    def screenshot(self, name: str, selector: str) -> None:
        """Keep a picture of the page, scrolled to the last element that fits."""
        self.page.locator(selector).last.evaluate("it => it.scrollIntoView({ block: 'center', behavior: 'instant' })")
        self.browser.keep(self.page, name)
