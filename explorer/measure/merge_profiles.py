"""merge_profiles(): the profiles of many processes as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path

from explorer.analysis.profile.views import merge_profiles as merged_profiles
from explorer.errors import OptionError
from explorer.files.disk import process_names, with_files
from explorer.model.results.profile import ProcessProfile, Profile

Source = Profile | str | PathLike[str]


def merge_profiles(
    profiles: Iterable[Source] | str | PathLike[str], /, *, names: Iterable[str] | None = None
) -> ProcessProfile:
    """Merge the profiles of processes that run one function, and show the time lost waiting for each other.

    Files are read one after another and not kept.

    Args:
        profiles: One per process: a `Profile`, a file of `Profile.save`, or a folder of such files.
        names: Names of the processes; by default the file names, or 0, 1, ….

    Raises:
        OptionError: There is nothing to merge, or not one name per profile.
        ResultFileError: A file is no profile.
        FileNotFoundError: A file is missing.

    Example:
        >>> import explorer
        >>> alone = explorer.Profile("step", "()", 1, 0.002, 0.001, 0.001, (), (), 0.0)
        >>> explorer.merge_profiles([alone, alone])
        ProcessProfile(step in 2 processes: a call takes 2 ms in process 0; no time is seen to be lost in collectives)
    """
    alone = isinstance(profiles, (str, PathLike))
    sources = with_files([profiles] if alone else profiles)
    wanted = [str(name) for name in names] if names is not None else process_names(sources)
    if not sources or len(wanted) != len(sources):
        raise OptionError(
            f"merge_profiles got {len(sources):,} profiles and {len(wanted):,} names.\n"
            "  Hint: merge_profiles('folder'), of files of Profile.save."
        )
    return merged_profiles(zip(wanted, _read(sources), strict=True))


def _read(sources: Iterable[Profile | Path]) -> Iterator[Profile]:
    for source in sources:
        yield source if isinstance(source, Profile) else Profile.load(source)
