"""How long Model Explorer takes to show the same graph, where it is installed (the extra `bench`)."""

import contextlib
import importlib.util
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

__all__ = ["is_installed", "seconds_to_paint"]

WAIT = 240_000
# WebGL without a GPU: the same software renderer for everything that the browser draws.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]
SERVER = "import sys, model_explorer; model_explorer.visualize(model_paths=[sys.argv[1]], port=int(sys.argv[2]))"
# Its canvas stands on the page and nothing spins any more.
WATCH = """
const look = () => {
    const shows = document.querySelector('canvas.main') && !document.querySelector('mat-spinner');
    if (!shows) return requestAnimationFrame(look);
    requestAnimationFrame(() => setTimeout(() => { window.painted = performance.now(); }));
};
requestAnimationFrame(look);
"""


def is_installed():
    return importlib.util.find_spec("model_explorer") is not None


@contextlib.contextmanager
def serving(file):
    """Its server on a free port, with a graph to show; the address of that."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(file), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        base = f"http://localhost:{port}/"
        for _ in range(120):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(base, timeout=5).close()
                break
            time.sleep(0.5)
        models = f'{{"models": [{{"url": "{file}"}}]}}'
        yield base + "?data=" + urllib.parse.quote(models)
    finally:
        server.terminate()
        server.wait()


def seconds_to_paint(playwright, chromium, file, screen):
    """Seconds from the start of the navigation to the first paint of the graph in `file`, its JSON."""
    with serving(file) as address:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport=screen)
        page.add_init_script(WATCH)
        page.goto(address)
        page.wait_for_function("window.painted", timeout=WAIT)
        painted = page.evaluate("window.painted") / 1000
        browser.close()
    return painted
