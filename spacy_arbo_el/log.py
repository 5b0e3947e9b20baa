"""The package's logger: a child of spaCy's, so that spaCy's format and level apply to it."""

import logging

log = logging.getLogger("spacy.arbo")
