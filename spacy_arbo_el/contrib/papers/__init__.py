"""What five papers have beyond the core: a module for each, and what some of them share."""

from pathlib import Path

# The folder of their systems, for ``arbo init-config --system``.
SYSTEMS = Path(__file__).parent
