"""The devices that a program can be compiled for: `figures.toml`, read once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from explorer.files.disk import parse_toml, read_text
from explorer.model.target import Hardware

_FILE = Path(__file__).with_name("figures.toml")


@cache
def all_hardware() -> Mapping[str, Hardware]:
    """All of them by key, in the order of the file."""
    return {key: _hardware(key, table) for key, table in _tables().items()}


@cache
def aliases() -> Mapping[str, str]:
    """The key of each other name."""
    return {alias: key for key, table in _tables().items() for alias in table.get("aliases", ())}


@cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    return {key: table for key, table in _contents().items() if key != "source"}


@cache
def _contents() -> Mapping[str, Any]:
    return parse_toml(read_text(_FILE))


def _hardware(key: str, table: Mapping[str, Any]) -> Hardware:
    sources = {source["id"]: source["text"] for source in _contents()["source"]}
    return Hardware(
        key=key,
        name=table["name"],
        platform=table["platform"],
        memory=table.get("memory", 0),
        bandwidth=table.get("bandwidth", 0.0),
        links=table.get("links", 0.0),
        flops=table.get("flops", {}),
        vector=table.get("vector", {}),
        clock=table.get("clock", 0.0),
        topology=table.get("topology", ""),
        chip=table.get("chip", ""),
        per_chip=table.get("per_chip", 1),
        compiler=table.get("compiler", {}),
        sources=tuple(sources[number] for number in table.get("sources", ())),
    )
