"""Write the complete configs of all systems, and of those that only an experiment uses.

python configs.py training
"""

import sys
from pathlib import Path

from spacy_arbo_el.config_sources import SYSTEMS, complete_config

SOURCES = Path(__file__).parents[1] / "configs"


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for system in [*SYSTEMS, *map(str, SOURCES.glob("*.cfg"))]:
        path = out / f"{Path(system).stem}.cfg"
        path.write_text(complete_config(system), encoding="utf8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
