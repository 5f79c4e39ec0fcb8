"""The two logs, for whoever asks for one."""

import pytest
from support.logs_under_test import FakeUnderTest, KafkaUnderTest


@pytest.fixture(params=["fake", "kafka"])
def log(request):
    log = FakeUnderTest() if request.param == "fake" else KafkaUnderTest(request.getfixturevalue("kafka"))
    yield log
    log.close()
