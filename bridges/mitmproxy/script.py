"""The script for `mitmproxy -s`: `kafkascope integrations mitmproxy` prints where it is."""

from kafkascope.bridges.mitmproxy.addon import KafkaAddon

addons = [KafkaAddon()]
