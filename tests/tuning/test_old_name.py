"""`toprank.choose` is the old name of this room: it still works, and says what to write instead."""

import pytest

import toprank.choose
import toprank.tuning


@pytest.mark.parametrize("name", ["PNormPushCV", "supported_p", "capacity_threshold", "choose_p"])
def test_the_old_name_warns_and_gives_the_same_thing(name):
    with pytest.warns(DeprecationWarning, match=rf"toprank\.tuning\.{name}.*goes away"):
        found = getattr(toprank.choose, name)
    assert found is getattr(toprank.tuning, name)


def test_a_name_that_never_was_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'choose_q'"):
        _ = toprank.choose.choose_q
