"""What only one of the five papers has, one module each, its config beside it."""

from pathlib import Path

# The folder of their systems, for ``arbo init-config --system``.
SYSTEMS = Path(__file__).parent
