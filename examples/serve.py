"""The service in an application of yours: ``uvicorn serve:app``, then POST /linker/link.

ARBO_MODEL is the folder of a pipeline; programs send ARBO_TOKEN as ``Authorization: Bearer …``.
"""

import os

from starlette.applications import Starlette
from starlette.routing import Mount

from spacy_arbo_el import load_pipeline
from spacy_arbo_el.contrib.review.serve.security import Rules
from spacy_arbo_el.contrib.review.serve.service import create_service

rules = Rules(token=os.environ["ARBO_TOKEN"])
linker = create_service(load_pipeline(os.environ["ARBO_MODEL"]), rules)
app = Starlette(routes=[Mount("/linker", linker)])
