"""Messages of large runs, each with a code."""

from ...base.errors import Message


class ScaleMessages:
    E890 = Message(
        "The folder {path} holds a run with other settings: {differences}. Choose another folder, "
        "remove this one, or use the settings of that run to resume it."
    )
    E891 = Message(
        "A worker on {host} differs from the driver: {differences}. Give all machines the same "
        "packages and the same pipeline folder."
    )
    E892 = Message(
        "A part is given as NUMBER/COUNT, such as 3/16, with NUMBER from 1 to COUNT; got {value!r}."
    )
    E893 = Message(
        "This needs Ray Data. Install it: pip install 'spacy_arbo_el[ray]'."
    )
    E894 = Message(
        "There is no format {value!r} for shards of links. Choose one of: {choices}."
    )
    E898 = Message(
        "The pipeline {name!r} is not in a folder that workers can load. Save it with "
        "save_pipeline(nlp, PATH), and give that path."
    )
    E899 = Message(
        "{missing} of {total} shards are not done in {path}. The messages above say why. Run the "
        "same command to resume."
    )
    E900 = Message("{name} must be {least} or more, got {value!r}.")
    E901 = Message(
        "The output of a linking in shards is a folder, but {path} is, or ends like, a file."
    )
    E902 = Message(
        "{path} is not replaced: the folder holds other files ({names}), and no run. Choose a new "
        "or an empty folder."
    )
    W890 = Message(
        "{count} documents could not be read or linked. {path} has them with their reasons; the "
        "others were linked."
    )
