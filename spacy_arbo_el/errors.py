"""Every message the package raises, in one place, each with a code.

A message says what is wrong, where, and what to do about it. Fill one in with
``Errors.E001.format(...)``; the code is put in front automatically, as spaCy
does with its own.
"""


class _Coded(type):
    """Puts ``[arbo-E001]`` before the text of the attribute ``E001``."""

    def __getattribute__(cls, code: str):
        text = super().__getattribute__(code)
        return text if code.startswith("__") else f"[arbo-{code}] {text}"


class Errors(metaclass=_Coded):
    # Entities and knowledge bases: E0xx
    E001 = (
        "Entity {where} has no usable id (got {value!r}). Every entity needs a "
        "non-empty string id, and 'NIL' is taken: it means 'no entity'."
    )
    E002 = (
        "The entity id {id!r} occurs twice{where}. Ids must be unique: merge the two "
        "entries, or give one of them another id."
    )

    # Reading files: E1xx
    E100 = "{path}, line {line}: {problem}"
    E101 = "{path} does not exist. {hint}"


class Warnings(metaclass=_Coded):
    pass
