"""Facts about Kafka as data: error codes, names of values and configs, releases."""
