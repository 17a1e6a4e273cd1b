"""HTTP/1.1 of schema registries inside captures: messages, and requests with their responses. It
knows neither Kafka nor schemas."""
