"""The time that is left of a long work."""

from spacy_arbo_el.fitting.steps import Steps


def test_the_time_left_is_that_of_steps_that_were_done_or_their_usual_share():
    now, said = [0.0], []
    steps = Steps({"search": (1, 1.0), "fit": (2, 8.0)}, said.append, lambda: now[0])
    for seconds, name, left in ((2, "search", 32), (10, "fit", 10), (14, "fit", 0)):
        now[0] += seconds
        steps.done(name)
        assert steps.left == left
    assert said == ["search done, about 32 s left", "fit 1 of 2 done, about 10 s left"]


def test_a_short_work_says_nothing():
    now, said = [0.0], []
    steps = Steps({"search": (9, 1.0)}, said.append, lambda: now[0])
    for _ in range(9):
        now[0] += 0.5
        steps.done("search")
    assert not said
