"""Every declared alert is of a view that can raise one."""

import pickle

import pytest

from lockstep.definition import Keyed
from lockstep.definition.alerting import Alerting, Delivery, Overload
from lockstep.definition.registry import VIEWS
from lockstep.settings import Settings
from lockstep.sinks.alerts import Alerts, alerting_views, receivers


@pytest.mark.parametrize("name", alerting_views())
def test_an_alert_is_of_a_view_whose_rows_are_final_and_is_identified_by_its_columns(name):
    view, alerting = VIEWS[name], alerting_views()[name]
    assert isinstance(view, Keyed)
    assert not view.upserts, "each change of a row would be an alert"
    assert {*alerting.id, alerting.key} <= view.columns.keys()
    assert set(view.key) <= set(alerting.id), "two rows would be one alert"


def test_what_goes_to_the_server_holds_names_only():
    alerting = Alerting(("event_id",), "user_id", Delivery.AT_LEAST_ONCE, Overload.DROP)
    sent = pickle.loads(pickle.dumps(Alerts("failed_logins", 2, alerting)))  # noqa: S301
    assert (sent.view, sent.generation, sent.alerting) == ("failed_logins", 2, alerting)


def test_only_receivers_that_the_settings_name_are_sent_to():
    alerting = alerting_views()["fraud_alerts"]
    assert receivers(Settings(), "fraud_alerts", alerting) == []
    both = Settings(webhook_url="http://127.0.0.1:1/", mail_server="127.0.0.1:25")
    assert [sink.name for sink in receivers(both, "fraud_alerts", alerting)] == [
        "fraud_alerts.webhook",
        "fraud_alerts.mail",
    ]
