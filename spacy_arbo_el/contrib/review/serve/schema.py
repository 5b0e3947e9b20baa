"""Bodies of requests and answers. These classes check bodies, and describe them in OpenAPI."""

import json
from typing import Annotated, Any

import srsly
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    field_validator,
    model_validator,
)
from typing_extensions import Self

Word = Annotated[StrictStr, Field(min_length=1)]
# What a request may have at most, all documents together.
MENTIONS = 2000
CHARACTERS = 500_000


# An object of JSON.
Json = dict[str, Any]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Mention(Body):
    """A stretch of a document. Start and end, exclusive, in characters of its text or tokens."""

    start: StrictInt = Field(ge=0)
    end: StrictInt
    # spaCy drops entities without a label.
    label: Word = "MENTION"


class Document(Body):
    """A text, or its tokens. Without mentions, the pipeline finds them."""

    text: StrictStr | None = Field(None, max_length=50_000)
    tokens: list[Word] | None = Field(None, max_length=20_000)
    mentions: list[Mention] | None = Field(None, max_length=1000)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.text is None) == (self.tokens is None):
            raise ValueError("give either text or tokens")
        if sum(map(len, self.tokens or ())) > 50_000:
            raise ValueError("the tokens have more than 50,000 characters")
        length = len(self.text if self.tokens is None else self.tokens)  # type: ignore[arg-type]
        for number, mention in enumerate(self.mentions or ()):
            if not mention.start < mention.end <= length:
                place = f"{mention.start} to {mention.end} is not within 0 to {length}"
                raise ValueError(f"mentions[{number}]: {place}")
        return self


class LinkRequest(Body):
    documents: list[Document] = Field(max_length=64)
    candidates: StrictInt = Field(
        5, ge=0, le=64, description="Of each mention, at most"
    )

    @model_validator(mode="after")
    def _is_short(self) -> Self:
        if sum(len(document.mentions or ()) for document in self.documents) > MENTIONS:
            raise ValueError(f"the documents have more than {MENTIONS:,} mentions")
        if (
            sum(
                map(
                    len,
                    (
                        document.text or "".join(document.tokens or ())
                        for document in self.documents
                    ),
                )
            )
            > CHARACTERS
        ):
            raise ValueError(f"the documents have more than {CHARACTERS:,} characters")
        return self


class EntityBody(Body):
    """An entity. One with its id is replaced."""

    id: Word
    title: StrictStr = ""
    description: StrictStr = ""
    aliases: list[Word] = []
    types: list[Word] = []
    frequency: StrictFloat = Field(0.0, ge=0, allow_inf_nan=False)
    meta: dict[str, Any] = {}

    @field_validator("meta")
    @classmethod
    def _is_storable(cls, value: dict[str, Any]) -> dict[str, Any]:
        try:
            srsly.msgpack_dumps(value)
            json.dumps(value, allow_nan=False)
        except (ValueError, OverflowError, RecursionError):
            raise ValueError(
                "a number is too large, or it is nested too deep"
            ) from None
        return value


class EntityRequest(Body):
    entities: list[EntityBody] = Field(min_length=1, max_length=1000)


class RemovalRequest(Body):
    ids: list[Word] = Field(min_length=1, max_length=1000)


class MergeRequest(Body):
    """An entity that becomes another one, which gets its names. Its id leads there afterwards."""

    id: Word
    into: Word


class CandidateBody(Body):
    kb_id: str
    title: str
    score: float
    share: float = Field(
        description="Probability, given that the knowledge base has the entity"
    )


class LinkBody(Mention):
    """A mention with its link. kb_id: "NIL" where no entity fits; new_entity: then its id."""

    text: str
    kb_id: str
    title: str
    score: float = Field(
        description="Probability of the link; for NIL, of the best candidate"
    )
    presence: float = Field(
        description="Probability that the knowledge base has the entity"
    )
    undecided: list[str] = Field(
        description="Ids of entities that nothing tells apart, for NIL"
    )
    new_entity: str
    candidates: list[CandidateBody]


class LinkedDocument(Body):
    mentions: list[LinkBody]


class LinkAnswer(Body):
    documents: list[LinkedDocument]


class State(Body):
    """entities: How many the knowledge base has."""

    entities: int


class ErrorBody(Body):
    """An error and its place."""

    error: str


def first_problem(error: Any) -> str:
    """The first problem that pydantic has found, with its place."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"The body is not JSON: {first['ctx']['error']}."
    steps = [
        f"[{step}]" if isinstance(step, int) else f".{step}"
        for step in first["loc"][1:]
    ]
    place = "".join(steps).lstrip(".")
    message = first["msg"].removeprefix("Value error, ")
    return f"{place or 'The body'}: {message}."
