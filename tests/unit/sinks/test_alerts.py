"""Only views with final rows declare alerts, and only the receivers in the settings get them."""

import pickle

import pytest

from lockstep.definition.alerting import Alerting, Delivery, Overload
from lockstep.definition.registry import VIEWS
from lockstep.definition.view import Output
from lockstep.settings import Settings
from lockstep.sinks.alerts import Alerts, alerting_views, receivers


@pytest.mark.parametrize("name", alerting_views())
def test_an_alerting_view_has_final_rows_and_columns_that_identify_each_alert(name):
    view, alerting = VIEWS[name], alerting_views()[name]
    assert view.output is Output.APPEND, "each change of a row would be an alert"
    assert {*alerting.id, alerting.key} <= view.columns.keys()
    assert set(view.key) <= set(alerting.id), "two rows would be one alert"


def test_the_alerts_of_a_view_can_be_pickled_for_the_spark_server():
    alerting = Alerting(("event_id",), "user_id", Delivery.AT_LEAST_ONCE, Overload.DROP)
    unpickled = pickle.loads(pickle.dumps(Alerts("failed_logins", 2, alerting)))  # noqa: S301
    assert (unpickled.view, unpickled.generation, unpickled.alerting) == ("failed_logins", 2, alerting)


def test_a_view_has_one_direct_sink_for_each_receiver_in_the_settings():
    alerting = alerting_views()["fraud_alerts"]
    assert receivers(Settings(), "fraud_alerts", alerting) == []
    both = Settings(webhook_url="http://127.0.0.1:1/", mail_server="127.0.0.1:25")
    assert [sink.name for sink in receivers(both, "fraud_alerts", alerting)] == [
        "fraud_alerts.webhook",
        "fraud_alerts.mail",
    ]
