"""Messages of the review and its service, each with a code."""

from ...base.errors import Message


class ReviewMessages:
    E793 = Message(
        "there is no decision {value!r}. Choose one of: {choices}, or leave it empty."
    )
    E848 = Message(
        "{path} is no output of arbo link: it must be a .csv, .jsonl, .spacy or .parquet file, or "
        "a folder of these."
    )
    E910 = Message(
        "This needs Starlette, Uvicorn and others. Install: pip install 'spacy_arbo_el[serve]'."
    )
    E911 = Message(
        "{path}, line {line}: no entry of a journal, or entries are missing from here on. Restore "
        "the file. To use the pipeline without decisions that it has not saved, move the file away."
    )
    E912 = Message(
        "{path}, line {line}: this decision does not suit the pipeline: {problem} The decisions "
        "stay in the file. To use the pipeline without those from this line on, move the file "
        "away, or delete these lines."
    )
    E915 = Message("{name} can't be {value!r}.")
    E916 = Message(
        "This review is read-only. To decide, start the server without --read-only."
    )
    E917 = Message(
        "{path} has {count} decisions, begun at {at}, on another pipeline than {model} is now, or "
        "on another state of it. To make them on this one: python -m spacy arbo serve {model} "
        "--adopt. To begin without them, move the file away."
    )
    E918 = Message(
        "{id} has changed since you opened it, perhaps in another window. Look at it again."
    )
    E919 = Message(
        "The token has fewer than {least} characters. Take a random one: openssl rand -hex 16"
    )
    E920 = Message(
        "Nothing is chosen, or one thing twice. Choose what the decision is on."
    )
    E921 = Message(
        "{id} is {became}: it is not open any more, or it never was. Look at the queue, or at "
        "History."
    )
    E923 = Message(
        "--url {url!r} is no address of a server. Give scheme and name, without a path, such as "
        "https://linker.example"
    )
    E924 = Message(
        "Nothing can listen at {host}, port {port}: {problem}. Choose another --host or --port."
    )
    E925 = Message(
        "{path} is no plain file but a link, a folder or a device, which could lead to any file. "
        "Remove it, or put the journal itself there."
    )
    E926 = Message(
        "{path} was moved or changed by another program since this server read it. Put the file "
        "back as it was, or stop the server, which saves all decisions, and start it again"
    )
    E930 = Message("{where} of a reconciliation request is wrong. {problem}.")
    W910 = Message(
        "{path}: the last line was cut off and is left out. Its decision was not confirmed."
    )
