"""The wheel puts the sidebar where JupyterLab looks for it, as JupyterLab wants it."""

import json
import tomllib
from pathlib import Path

import explorer

ROOT = Path(explorer.__file__).parents[1]


def test_the_extension_lies_where_the_wheel_takes_it_from_under_the_name_of_its_container():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    ((source, target),) = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"].items()
    package = json.loads((ROOT / source / "package.json").read_text(encoding="utf-8"))
    assert target == f"share/jupyter/labextensions/{package['name']}"
    assert package["version"] == explorer.__version__
    script = (ROOT / source / package["jupyterlab"]["_build"]["load"]).read_text(encoding="utf-8")
    assert f'"{package["name"]}"' in script
    assert package["jupyterlab"]["_build"]["extension"] in script
