"""Choose the numbers of exemplars, mentions and neighbours of an inference, and the thresholds.

    python tuned_counts.py MODEL DEV.spacy [--n-exemplars 1 5 15] [--n-mentions 0 1 2 4 8]
        [--n-neighbors 4 8] [--output MODEL]

``arbo fit --thresholds`` does so with the numbers that the config has.
"""

import argparse
from pathlib import Path

from spacy_arbo_el import load_pipeline, save_pipeline
from spacy_arbo_el.corpora.docbin import read_docs
from spacy_arbo_el.fitting.tuning import store, tune
from spacy_arbo_el.linker import find_linker


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    for name in ("--n-exemplars", "--n-mentions", "--n-neighbors"):
        parser.add_argument(name, type=int, nargs="*", default=[])
    parser.add_argument("--output", type=Path, help="by default, the pipeline is replaced")
    options = parser.parse_args()
    nlp = load_pipeline(options.model)
    result = tune(
        find_linker(nlp),
        list(read_docs(options.data, nlp.vocab)),
        n_exemplars=options.n_exemplars,
        n_mentions=options.n_mentions,
        n_neighbors=options.n_neighbors,
    )
    store(nlp, result)
    for setting, tried in result.tried.items():
        for count, value in tried.items():
            print(f"{setting} = {count}: accuracy {value:.4f}")
    print(result.summary)
    save_pipeline(nlp, options.output or options.model)


if __name__ == "__main__":
    main()
