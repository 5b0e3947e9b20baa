"""The package's log: a child of spaCy's, so that its lines look, and are silenced, like spaCy's."""

import logging

log = logging.getLogger("spacy.arbo")
