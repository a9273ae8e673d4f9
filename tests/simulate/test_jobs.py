"""The tables of the jobs: their shares, their truth, and what each tutorial rests on."""

import numpy as np
import pytest

from toprank.metrics import auc
from toprank.simulate import leads, machines, molecules, patients

JOBS = (leads, molecules, machines, patients)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_a_job_has_the_share_that_was_asked_for_and_its_truth_ranks_best(job):
    table = job(3000, share=0.1, random_state=1)
    assert len(table) == len(table.features) == 3000
    assert table.features.shape[1] == len(table.feature_names)
    assert table.probability.mean() == pytest.approx(0.1, abs=1e-6)
    assert abs(table.label.mean() - 0.1) < 0.03
    best = auc(table.label, table.probability)
    assert best > 0.7 and all(auc(table.label, column) < best for column in table.features.T)
    again, other = job(3000, share=0.1, random_state=1), job(3000, share=0.1, random_state=2)
    assert np.array_equal(again.features, table.features)
    assert not np.array_equal(other.features, table.features)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_what_no_job_can_be_is_refused_with_what_was_expected(job):
    for bad, said in (({"n": 1}, "n=1"), ({"share": 1.5}, "share=1.5"), ({"share": 0}, "share=0")):
        with pytest.raises(ValueError, match=f"{said}.*expected"):
            job(**bad)
    if job is molecules:
        with pytest.raises(ValueError, match=r"bits=8.*at least 32"):
            molecules(100, bits=8)


def test_likely_buyers_order_little_and_the_old_show_weaker_signs():
    table = leads(20_000)
    assert np.corrcoef(table.probability, table.value)[0, 1] < -0.1
    room = patients(20_000)
    pulse = room.features[:, room.feature_names.index("pulse")]
    signs = {
        group: auc(room.label[room.group == group], pulse[room.group == group])
        for group in ("under 40", "70 and over")
    }
    assert signs["70 and over"] < signs["under 40"] - 0.05
