"""A parser of the compiler's in a child process: some texts end the process that parses them."""

import pickle
import subprocess
import sys


def answers(module, texts):
    """For each text what the `parse` of a module answers, or a string that says why there is no answer."""
    texts = list(texts)
    at = 0
    while at < len(texts):
        command = [sys.executable, "-c", f"from tests.support.parser_child import serve; serve({module!r})"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as child:
            try:
                while at < len(texts):
                    pickle.dump(texts[at], child.stdin)
                    child.stdin.flush()
                    yield pickle.load(child.stdout)
                    at += 1
            except (EOFError, BrokenPipeError):
                yield "the parser ended its process"
                at += 1


def serve(module):
    """Answer one pickled text after the other."""
    from importlib import import_module

    parse = import_module(module).parse
    while True:
        try:
            text = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(parse(text), sys.stdout.buffer)
        sys.stdout.buffer.flush()
