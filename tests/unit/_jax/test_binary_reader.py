"""The compilers' own parsers run in a process of their own, within bounds."""

import sys

import pytest

from explorer._jax import native


@pytest.mark.skipif(sys.platform == "win32", reason="Windows limits no seconds of processors")
def test_a_module_whose_reading_does_not_end_is_refused_after_seconds_of_processors(monkeypatch, tmp_path):
    reader = tmp_path / "endless.py"
    reader.write_text(
        "import sys\n"
        "from importlib.util import module_from_spec, spec_from_file_location\n"
        f"spec = spec_from_file_location('reader', {native.binary_reader.__file__!r})\n"
        "module = module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "module._SECONDS = 1\n"
        "def endless(data):\n"
        "    while True:\n"
        "        pass\n"
        "module.READERS['endless'] = endless\n"
        "module.main(sys.argv[1])\n"
    )
    monkeypatch.setattr(native.binary_reader, "__file__", str(reader))
    with pytest.raises(ValueError, match="too long for its size"):
        native._read_apart("endless", b"")
