"""The memory of this process in MB, as Linux says; 0 where the system does not say."""

from pathlib import Path

STATUS = Path("/proc/self/status")


def resident_megabytes() -> int:
    return _megabytes("VmRSS:")


def peak_megabytes() -> int:
    """``ru_maxrss`` of ``getrusage`` begins with that of the process that started this one."""
    return _megabytes("VmHWM:")


def _megabytes(name: str) -> int:
    lines = STATUS.read_text().splitlines() if STATUS.exists() else []
    return next(
        (int(line.split()[1]) // 1024 for line in lines if line.startswith(name)), 0
    )
